"""Finds and repairs what old faults or changes by hand have left in a shard, while everything goes on.

Authority: none beyond the scripts; each repair looks again, inside its script, at what it rests on. It trusts the ledger only
once it has everything that the journal had when Redis was looked at (`ledger_trust`): until then a difference is lag and is
counted as unsure. A pass that a server interrupts goes on where it was; a pass that ends finds nothing on a healthy shard.
"""
