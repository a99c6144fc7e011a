"""What every kind of process needs around its own work: its life cycle, clock, signals, loops, logs and metrics.

Authority: none over jobs or runs; nothing here reads Redis or Postgres. Trust: the machine's boot clock never goes back;
its wall clock is for display alone. Failure: a loop whose server is away (Unavailable) backs off with jitter and goes on;
any other error ends the process, which its supervisor starts again. A metrics reader that is slow or broken is dropped.
"""
