"""One file per kind of target."""
