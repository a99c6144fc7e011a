"""Process plumbing: service lifecycle, clock, signals, logging, metrics."""
