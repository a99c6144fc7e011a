"""Schedules: when a job runs, from the text that people write to instants (ms since 1970, UTC).

spec is the text; parse reads it, once, into parsed, which cannot be invalid; schedule resolves that as of now and makes what has
the occurrences: kinds (one-off, interval, cron), bounds (start, end, max_runs, exclusions, unions), exclusions and zones below
them. misfire says what becomes of late occurrences, regrid what a replaced schedule keeps; preview, words and warnings tell
people.

Authority: this package alone says when a job is due. Every node computes the same instants from the same text, and scripts only
keep them. Trusts: the caller's clock and calendars, and the pinned tzdata, never the host's.

Fails: Invalid names every wrong field and the fix. What was stored and cannot be read any more, as a zone that newer tzdata
lacks, is Invalid too: the scheduler marks such a job as invalid. Every search is bounded.
"""
