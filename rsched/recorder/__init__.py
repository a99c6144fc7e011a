"""Moves the journal to the ledger, opens and repairs shards, forgets completed jobs, keeps partitions of history."""
