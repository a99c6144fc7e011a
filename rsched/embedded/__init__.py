"""Runs a whole deployment on one machine: an embedded Redis and Postgres, and the supervisor of `rsched up`.

Authority: the lock of the data folder. Whoever has it is the only one to start servers and processes on that folder.

Trust: the kernel ends children with their parent; URLs that are given in place of the embedded servers are used as they are.

Failure: what cannot start raises Misconfigured, with the fix. A process or server that dies is started again with a growing
pause; the end of the supervisor, even by kill -9, ends everything that it started.
"""
