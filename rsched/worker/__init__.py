"""Fetch, lease renewal, execute, finish; targets/ holds one file per kind of target.

A worker trusts a lease only until 5 s before its end, counted on its own boot-time clock from before the last good
renewal was sent; what it cannot renew it stops.
"""
