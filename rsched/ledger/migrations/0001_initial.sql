-- Instants are ms since 1970 (UTC), by Redis' clock unless said otherwise. generation and n: the journal entry (at most)
-- that a row was last changed by, so that repair can tell what a Redis that lost its tail has not got.

CREATE TABLE shards (
    shard      text PRIMARY KEY,
    generation bigint NOT NULL,
    fence      bigint NOT NULL
);

CREATE TABLE positions (
    shard      text NOT NULL,
    stream     text NOT NULL CHECK (stream IN ('definitions', 'journal')),
    generation bigint NOT NULL,
    n          bigint NOT NULL,
    touched_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shard, stream)
);

-- Where each past generation of a stream ended, as far as it was recorded: a waiter of an entry that a failover lost
-- must not be answered by entries of the next generation.
CREATE TABLE position_ends (
    shard      text NOT NULL,
    stream     text NOT NULL,
    generation bigint NOT NULL,
    n          bigint NOT NULL,
    PRIMARY KEY (shard, stream, generation)
);

CREATE TABLE jobs (
    job_id       text COLLATE "C" PRIMARY KEY,
    shard        text NOT NULL,
    team         text NOT NULL,
    name         text,
    handle       text NOT NULL,
    incarnation  bigint NOT NULL,
    state        text NOT NULL CHECK (state IN ('active', 'paused', 'completed', 'invalid', 'deleted')),
    version      bigint NOT NULL,
    state_rank   smallint NOT NULL,
    tags         text[] NOT NULL,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    completed_at bigint,
    forgotten    boolean NOT NULL DEFAULT false,
    value        bytea NOT NULL,
    stream       text NOT NULL,
    generation   bigint NOT NULL,
    n            bigint NOT NULL
);
COMMENT ON COLUMN jobs.completed_at IS 'recorder''s clock: when the completed or deleted state was recorded';
COMMENT ON COLUMN jobs.value IS 'head, newline, body as in Redis; a deleted job keeps its last body';
CREATE INDEX jobs_by_handle ON jobs (team, handle, incarnation DESC);
CREATE INDEX jobs_by_age ON jobs (created_at DESC, job_id DESC);
CREATE INDEX jobs_to_forget ON jobs (completed_at) WHERE completed_at IS NOT NULL AND NOT forgotten;

-- No index names the state: moves of a run stay heap-only updates, which halves what recording costs.
CREATE TABLE runs (
    claimed_on date NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    shard      text NOT NULL,
    state      text NOT NULL CHECK (
        state IN ('QUEUED', 'RUNNING', 'RETRYING', 'SUCCEEDED', 'DEAD', 'CANCELLED', 'SKIPPED')),
    revision        bigint NOT NULL,
    queue_key       text NOT NULL,
    schedule_version         bigint NOT NULL,
    attempt    integer NOT NULL,
    fence      bigint NOT NULL,
    worker     text NOT NULL,
    claimed_at bigint NOT NULL,
    due_at     bigint NOT NULL,
    started_at bigint NOT NULL,
    flags      text NOT NULL,
    ended_at   bigint,
    error      text,
    stream     text NOT NULL,
    generation bigint NOT NULL,
    n          bigint NOT NULL,
    PRIMARY KEY (claimed_on, run_id)
) PARTITION BY RANGE (claimed_on);

-- One row an attempt that ended in a failure; the last one of a run is in its own row, too.
CREATE TABLE attempts (
    claimed_on date NOT NULL,
    run_id     text COLLATE "C" NOT NULL,
    attempt    integer NOT NULL,
    fence      bigint NOT NULL,
    state      text NOT NULL CHECK (state IN ('RETRYING', 'DEAD')),
    worker     text NOT NULL,
    due_at     bigint NOT NULL,
    started_at bigint NOT NULL,
    ended_at   bigint NOT NULL,
    error      text NOT NULL,
    PRIMARY KEY (claimed_on, run_id, attempt)
) PARTITION BY RANGE (claimed_on);

-- Runs that were DEAD at some time; runs tells whether they still are.
CREATE TABLE dead_letters (
    run_id     text COLLATE "C" PRIMARY KEY,
    claimed_on date NOT NULL,
    ended_at   bigint NOT NULL
);
CREATE INDEX dead_letters_by_age ON dead_letters (ended_at DESC, run_id DESC);

CREATE TABLE skips (
    job_id   text COLLATE "C" NOT NULL,
    first_at bigint NOT NULL,
    last_at  bigint NOT NULL,
    total    bigint NOT NULL,
    reason   text NOT NULL,
    at       bigint NOT NULL,
    PRIMARY KEY (job_id, first_at, last_at, reason, at)
);

CREATE TABLE watermarks (
    shard     text NOT NULL,
    partition integer NOT NULL,
    ms        bigint NOT NULL,
    PRIMARY KEY (shard, partition)
);

CREATE TABLE workers (
    shard   text NOT NULL,
    worker  text NOT NULL,
    queues  text NOT NULL,
    seen_at bigint NOT NULL,
    PRIMARY KEY (shard, worker)
);

-- What Redis or Postgres could not make sense of, quarantined for people.
CREATE TABLE quarantine (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shard       text NOT NULL,
    stream      text NOT NULL,
    kind        text NOT NULL,
    key         text NOT NULL,
    raw         bytea NOT NULL,
    reason      text NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now()
);
