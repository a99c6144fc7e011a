"""The `rsched` command: the composition root that builds each process from its settings, and the commands that people type.

Authority: none of its own. Commands about jobs, runs and calendars go through the API; doctor, reconcile, tz and the processes
read the settings and speak to the servers themselves. Nothing else may import this package.

Trust: what people type is checked here as far as it concerns the options, and by the API for the rest.

Failure: a command ends with 0 when it worked, with 1 when it was refused or failed, with 2 when it was typed wrongly; the error
says the fix in a line on standard error. A process refuses to start on servers that cannot keep a promise.
"""
