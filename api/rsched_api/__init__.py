"""The HTTP API: a Starlette app that puts the store and the ledger behind URLs.

Purpose: to check requests, to ask the store (Redis) for changes and the ledger (Postgres) for what is recorded, and
to answer only when a change is as durable as its `?ack=` asks.

Authority: none of its own. Scripts in Redis decide every change, by version and in one step; this package keeps no
state between requests but caches, so that any number of its processes run side by side, and each may be killed at any
moment.

Trust: nothing in a request is trusted; every field is checked, and every body is bounded, before a server is asked.
It has no keys yet, so it binds to loopback unless told otherwise (`main.check_bind`). Redis and Postgres are trusted,
but not to answer: each request has a deadline.

Failure: every error leaves as an RFC 9457 problem document with a stable code. A change whose outcome is not known
answers 503 with `durability: unknown`; whoever sent it repeats it with the same name or Idempotency-Key and learns
the outcome.

Rooms: `routes/` has the handlers, `http/` what they share; `app` puts them together, `main` runs the process, `views`
turns records into answers, `openapi` describes it all.
"""
