"""One file per kind of target. A target calls `begin` right before it touches the outside world."""
