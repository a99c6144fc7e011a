"""Writes into a Postgres that came back without its last writes what Redis still has, and closes there what Redis has no more.

Authority: a mark in Redis that is set before anything is recorded past a gap, and taken away at the end; whoever has the
recorder's lock goes on with it. It trusts Redis for what exists now, and the generation for having lost nothing meanwhile: an
observation counts only if the generation is the same before and after it. Everything that is written goes through the same
guards as the journal, so a later record wins, and beginning again does no harm.
"""
