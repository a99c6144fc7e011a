-- works with: 5
-- Open runs are found without looking through history, though no index names the state. This one is of whole ranges of pages, as
-- rows come in the order of their claims, and of a column that moves leave alone, so that these stay heap-only updates.
-- Housekeeping keeps it up with new pages. On a ledger with history it takes as long as reading that, and recording waits
-- meanwhile, as it does while Postgres is away.
CREATE INDEX runs_by_claim ON runs USING brin (claimed_at) WITH (pages_per_range = 256);

-- The mark of each shard: every run claimed before listed_to and open is among the stragglers, every other open one was
-- claimed since. From listing_to on, which is ahead of it while a window is looked through, whoever records sees to that.
CREATE TABLE straggler_marks (
    shard      text PRIMARY KEY,
    listed_to  bigint NOT NULL DEFAULT 0,
    listing_to bigint NOT NULL DEFAULT 0,
    CHECK (listed_to <= listing_to)
) WITH (fillfactor = 10);

-- The rows of runs that are open though claimed before the mark. A row too many does no harm: housekeeping takes it out.
CREATE TABLE stragglers (
    shard      text NOT NULL,
    claimed_on date NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    PRIMARY KEY (shard, claimed_on, run_id)
);
CREATE INDEX stragglers_by_run ON stragglers (run_id);
