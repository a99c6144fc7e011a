"""The handlers, a file for each verb or family of verbs; `rsched_api.app.ROUTES` says which path leads to which.

Purpose: each handler reads its request, finds the job or run (`require_...`), calls one verb of the store, waits
until the change is recorded (`wait_...`), and answers with a view.

Authority: a handler decides what a request asks for, and whether a repeat of it asks for the same. Whether the change
is made is decided by the store's script, which compares the version; a handler that loses to another change reads the
job again, a bounded number of times.

Trust: bodies are decoded into frozen Structs that refuse unknown fields. A repeated request is known by the job's
name, its Idempotency-Key, or the hash of its body.

Failure: handlers raise the errors of `rsched.core.errors` and let them pass: Invalid and TooLarge before anything was
changed, NotFound, Conflict and VersionConflict from what is there, Unavailable and DurabilityUnknown (both 503) where
a server does not answer.
"""
