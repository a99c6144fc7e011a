"""Events of the journal become rows, each batch in one transaction.

Authority: the row of `positions`, which moves in the transaction that records and makes recorders take turns. It trusts no
event: each is checked by itself, what Postgres refuses is found by bisection and goes to `quarantine`, and no record
overwrites a later one, by (fence, revision) of runs and (version, state rank) of jobs. It fails as Unavailable; whether a
batch is in, the position tells.
"""
