"""Partition ownership, calendars, and the tick: claim, release, misfire, catch-up, reap.

Ownership is for efficiency: every verb is atomic, so two schedulers that both believe they own a partition claim each
occurrence once.
"""
