"""History past its retention goes to Parquet files, verified, and only then out of Postgres.

Authority: the table `archived`. It trusts a file only after it has read its row count back, and drops nothing that is not in
one. It fails as Unavailable, also where the disk refuses: whatever is repeated finds what is leaving, and goes on with it.
"""
