"""Opens a shard for the server that it is on, and brings back from the ledger what Redis has lost.

Authority: the generation, which Postgres issues; every script refuses a caller of an older one. It trusts the ledger for all
that was recorded, and Redis for what is in its journal behind that. Before the shard opens, only what has to be there for the
first claim is restored; the rest follows in the background. Everything that is written is compared with what Redis has by
version or revision, so a step that is done twice, or by two recorders, changes nothing. If a recorder dies, the next one begins
a new generation and goes through the same steps.
"""
