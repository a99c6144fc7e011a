"""The worker process: fetches runs, renews their leases, calls their targets and reports how they ended.

Authority: the lease and the fence in Redis. A worker may run an attempt only while it has the lease, and Redis refuses every
result that carries an older fence. targets/ has one file for each kind of target.

Trust: a lease counts only until a margin (by default 5 s) before its end, on this machine's boot clock, from the moment
before the last good renewal was sent. Nothing that Redis did not confirm extends it.

Failure: while Redis is away, running attempts go on until that deadline and results wait to be sent again. An attempt whose
lease cannot be renewed is stopped; if it does not stop, the whole process exits before the lease ends, so that two attempts
at one run never overlap. After Redis has recovered, the worker first says which attempts it runs, then goes on.
"""
