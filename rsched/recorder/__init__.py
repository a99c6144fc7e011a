"""Moves the journal of each shard to the ledger, and keeps both servers of one mind.

Authority: an advisory lock in Postgres; one recorder a shard has it, others stand by and try for it twice a second. What is
recorded is decided by the position row of the ledger, which moves in the same transaction as the rows, so two recorders that
both believe they have the lock cannot record an entry twice. It trusts Redis for what happened since the position, and the
ledger for everything before. When either server is away it waits and begins again from the position; nothing is kept in memory
that cannot be read again.

`stream` records, `recovery` opens a shard after a loss, `reconcile` repairs what should not be there, `resync` writes into
Postgres again what it lost, `housekeeping` forgets and archives.
"""
