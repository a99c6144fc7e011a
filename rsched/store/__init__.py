"""The only importer of redis and runner of lua/: keys, scripts, and a store of parts, each with the verbs that serve one purpose.

Authority: Redis decides who may work (leases) and when anything is due (its own TIME); nothing here reads a local clock to
decide. Errors: `Unavailable` for all that passes, by itself or once people have repaired it, and `ShardClosed` where a shard is
not open on the server that answers. Outcomes that callers expect are tags in replies.

`Store` has the parts; a process declares those that it needs. `Connection` calls the server for all of them.
"""
