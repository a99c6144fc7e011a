-- works with: 5
-- Open runs are found without looking through history, though no index names the state. This one is of whole ranges of pages, as
-- rows come in the order of their claims, and of a column that moves leave alone, so that these stay heap-only updates.
-- Housekeeping keeps it up with new pages. On a ledger with history it takes as long as reading that, and recording waits
-- meanwhile, as it does while Postgres is away.
CREATE INDEX runs_by_claim ON runs USING brin (claimed_at) WITH (pages_per_range = 256);

-- The mark of each shard: every run claimed before indexed_until and open is among the unfinished_runs, every other open one was
-- claimed since. From indexing_until on, which is ahead of it while a window is looked through, whoever records sees to that.
CREATE TABLE unfinished_high_water (
    shard      text PRIMARY KEY,
    indexed_until  bigint NOT NULL DEFAULT 0,
    indexing_until bigint NOT NULL DEFAULT 0,
    CHECK (indexed_until <= indexing_until)
) WITH (fillfactor = 10);

-- The rows of runs that are open though claimed before the mark. A row too many does no harm: housekeeping takes it out.
CREATE TABLE unfinished_runs (
    shard      text NOT NULL,
    claimed_on date NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    PRIMARY KEY (shard, claimed_on, run_id)
);
CREATE INDEX unfinished_runs_by_run ON unfinished_runs (run_id);
