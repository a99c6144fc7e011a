-- Teams' calendars of exclusions; body: msgpack list of dates and date ranges, empty for a deleted one.
CREATE TABLE exclusions (
    shard      text NOT NULL,
    team       text NOT NULL,
    name       text NOT NULL,
    version    bigint NOT NULL,
    updated_at bigint NOT NULL,
    body       bytea NOT NULL,
    PRIMARY KEY (team, name)
);

-- Catch-up ranges, as far as they are paid out: start_at past end_at, nothing of it is left.
CREATE TABLE catchups (
    shard    text NOT NULL,
    job_id   text COLLATE "C" NOT NULL,
    made_at  bigint NOT NULL,
    end_at   bigint NOT NULL,
    start_at bigint NOT NULL,
    schedule_version       bigint NOT NULL,
    flags    text NOT NULL,
    at       bigint NOT NULL,
    PRIMARY KEY (job_id, made_at, end_at)
);
CREATE INDEX catchups_open ON catchups (job_id) WHERE start_at <= end_at;

-- What runs with a payload of their own are called with (msgpack).
CREATE TABLE payloads (
    run_id      text COLLATE "C" PRIMARY KEY,
    payload     bytea NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now()
);
