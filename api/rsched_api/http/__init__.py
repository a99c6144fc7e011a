"""What every handler shares: reading a request, finding its job, waiting for its record, and answering with errors.

Purpose: `requests` reads paths, headers, queries and bodies; `lookup` finds the job that a request means; `ack` and
`deadline` are the middleware for `?ack=` and for the one time limit over all waits; `deps` has the waits that make a
success durable; `problems` turns errors into problem documents; `batch_body` parses large batches in slices of time;
`call_batcher` lets calls of one moment share a query.

Authority: how long a request may wait, and what its success stands for. What a change means is decided in `routes/`
and in the store.

Trust: a job that Redis has is current, unless definitions are still being restored; then the ledger's version is
compared first (`lookup.require_current`). What Redis does not have is looked up in the ledger before it is called
missing.

Failure: a wait that ends without its record raises DurabilityUnknown (503) after a change, and Unavailable (503)
before one.
"""
