"""Claims what comes due, releases it at its instant, catches up what was missed, and reaps attempts whose lease has ended.

Authority: Redis' scripts and Redis' clock; a scheduler only proposes. Acquiring partitions spares work and nothing rests on it:
every script is atomic, so two schedulers that both believe they have a partition claim each occurrence once. Each loop is a
`step()` that does a bounded piece and says whether there is more. If a scheduler dies, the others go on at once with everything
but its partitions, which they acquire when its lease ends.
"""
