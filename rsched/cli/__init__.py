"""The composition root: builds each process from its settings, and the commands people type."""
