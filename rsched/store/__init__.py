"""The only importer of redis and runner of lua/: keys, scripts, one method per verb.

Authority: Redis decides who may work (leases) and when anything is due (its own TIME); nothing here reads a local clock.
"""
