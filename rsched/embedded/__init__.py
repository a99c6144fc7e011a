"""Starts the embedded Redis and Postgres, and supervises the processes of `rsched up`."""
