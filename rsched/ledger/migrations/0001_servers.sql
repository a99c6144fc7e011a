-- What the processes of rsched agree on: shards and their generations, how far each journal stream is recorded, and the small
-- dictionaries that keep rows of history short.
--
-- Instants are timestamptz. They come from Redis' clock, unless a comment says otherwise, and have whole milliseconds.

CREATE TABLE shards (
    shard      text PRIMARY KEY,
    generation bigint NOT NULL,
    fence      bigint NOT NULL
);
COMMENT ON TABLE shards IS 'One row for each Redis shard: the numbers that must only grow, whatever a server forgets.';
COMMENT ON COLUMN shards.generation IS 'The last generation (recovery of the shard) that was given out.';
COMMENT ON COLUMN shards.fence IS 'The fence that the shard began its last generation with.';

CREATE TABLE positions (
    shard      text NOT NULL,
    stream     text NOT NULL CHECK (stream IN ('definitions', 'journal')),
    generation bigint NOT NULL,
    sequence   bigint NOT NULL,
    touched_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shard, stream)
);
COMMENT ON TABLE positions IS 'The last entry of each journal stream that is recorded here. It moves in the transaction that records.';

CREATE TABLE position_ends (
    shard      text NOT NULL,
    stream     text NOT NULL,
    generation bigint NOT NULL,
    sequence   bigint NOT NULL,
    PRIMARY KEY (shard, stream, generation)
);
COMMENT ON TABLE position_ends IS
    'Where each past generation of a stream ended. Whoever waits for an entry that a failover lost must not be answered by the next generation.';

CREATE TABLE watermarks (
    shard     text NOT NULL,
    partition integer NOT NULL,
    ms        bigint NOT NULL,
    PRIMARY KEY (shard, partition)
);
COMMENT ON TABLE watermarks IS 'All occurrences of the partition before ms (since 1970) have been claimed.';

CREATE TABLE restore_watermarks (LIKE watermarks INCLUDING ALL);
COMMENT ON TABLE restore_watermarks IS
    'The watermarks as a background restore found them. They stay until it has ended, so that another recorder can go on with it.';

CREATE TABLE workers (
    shard   text NOT NULL,
    worker  text NOT NULL,
    queues  text NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (shard, worker)
);
COMMENT ON TABLE workers IS 'Worker processes that have fetched, with the queues that they serve.';

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
COMMENT ON TABLE quarantine IS 'Events that Redis or Postgres could not make sense of, and gaps of the journal, kept for people to look at.';
-- Keys of what could not be read may be of any length.
CREATE INDEX quarantine_by_key ON quarantine USING hash (key);

-- A run names its queue key and its worker by number. Rows are never changed or deleted, so that a session may remember them.
CREATE TABLE queue_keys (
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shard    text NOT NULL,
    key      text COLLATE "C" NOT NULL,
    queue    text NOT NULL,
    team     text NOT NULL,
    priority text NOT NULL,
    UNIQUE (shard, key)
);
COMMENT ON TABLE queue_keys IS 'Dictionary of (shard, queue, team, priority), which finished_runs and unfinished_runs name by id.';
COMMENT ON COLUMN queue_keys.key IS 'queue:team:number of the priority, as Redis writes it.';
CREATE INDEX queue_keys_by_team ON queue_keys (team);

CREATE TABLE worker_names (
    id   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);
COMMENT ON TABLE worker_names IS 'Dictionary of the processes that ran attempts, which runs and attempts name by id.';
