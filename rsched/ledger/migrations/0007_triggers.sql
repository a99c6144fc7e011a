-- works with: 5
-- Triggers that came with an idempotency key, of which hash is one: the run of `at` is what a repeat gets, also after a loss of
-- Redis. Kept for a day and deleted by housekeeping.
CREATE TABLE triggers (
    shard  text NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    hash   text COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    PRIMARY KEY (job_id, hash)
);
CREATE INDEX triggers_by_age ON triggers (at);
