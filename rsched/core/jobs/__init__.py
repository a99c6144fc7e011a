"""Jobs: what people send, what is kept, and what is decided before anything is written.

model is a job's fields, declared once; targets what a run calls; policies the choices that records keep as letters; validate
reads a request; records makes the record that is kept; packed is its layout, and that of runs and events, which scripts and the
ledger share.

Authority: validate alone decides which jobs can stand, records when two requests ask for the same job, packed how values look
in Redis and in Postgres. The API is an HTTP shell around them.

Trusts: nothing of a request. Of a stored value: that a release of rsched wrote it, perhaps an older or a newer one; fields are
only ever added at the end.

Fails: a request that cannot stand is Invalid, which names every wrong field and the fix, or TooLarge; a stored value that is
none is a ValueError or KeyError, and whoever reads it quarantines it.
"""
