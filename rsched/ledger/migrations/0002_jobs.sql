-- Jobs, and what belongs to jobs: skips, catch-up ranges, holiday calendars and keyed triggers.

-- Milliseconds since 1970 of an instant, and the other way round.
CREATE FUNCTION ms_of(timestamptz) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    AS 'SELECT (extract(epoch FROM $1) * 1000)::bigint';
CREATE FUNCTION at_ms(bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT to_timestamp($1 / 1000.0)';

CREATE TYPE job_state AS ENUM ('active', 'paused', 'completed', 'invalid', 'deleted');

-- Columns are in the order of their alignment, which saves up to 24 bytes a row.
CREATE TABLE jobs (
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    next_run_at     timestamptz,
    ended_at        timestamptz,
    due_once_at     timestamptz,
    interval_ms     bigint,
    phase_ms        bigint,
    state           job_state NOT NULL,
    version         integer NOT NULL,
    incarnation     integer NOT NULL,
    state_rank      smallint NOT NULL,
    forgotten       boolean NOT NULL DEFAULT false,
    schedule_kind   "char" NOT NULL,
    job_id          text COLLATE "C" PRIMARY KEY,
    shard           text COLLATE "C" NOT NULL,
    team            text COLLATE "C" NOT NULL,
    name            text COLLATE "C",
    idempotency_key text COLLATE "C",
    schedule_key    text COLLATE "C",
    tags            text[],
    schedule        jsonb,
    target          jsonb,
    value           bytea NOT NULL
) WITH (fillfactor = 90);
COMMENT ON TABLE jobs IS 'One row for each job, deleted ones among them. rsched owns the table: read it, and change jobs through the API.';
COMMENT ON COLUMN jobs.next_run_at IS
    'When the job is due next. Exact for one-off jobs. For recurring ones it is as of up to a minute ago: it is written in bulk, not with each run. NULL unless the job is active.';
COMMENT ON COLUMN jobs.ended_at IS 'When the job was completed or deleted, by the recorder''s clock.';
COMMENT ON COLUMN jobs.due_once_at IS 'The instant of a one-off job (schedule_kind o).';
COMMENT ON COLUMN jobs.interval_ms IS 'The length of the interval (schedule_kind e).';
COMMENT ON COLUMN jobs.phase_ms IS 'The anchor of the interval modulo its length.';
COMMENT ON COLUMN jobs.version IS 'Grows with every change of the job. Of two records the one with the greater (version, state_rank) is the later.';
COMMENT ON COLUMN jobs.incarnation IS 'Counts the jobs that the team gave this name or idempotency key.';
COMMENT ON COLUMN jobs.forgotten IS 'Redis does not have the job any more, as it ended long ago.';
COMMENT ON COLUMN jobs.schedule_kind IS 'o: one-off, e: interval, c: computed (cron, several schedules, bounds).';
COMMENT ON COLUMN jobs.schedule_key IS 'Which cached occurrences a computed schedule shares with other jobs.';
COMMENT ON COLUMN jobs.schedule IS 'The schedule as the API shows it; an array where the job has several.';
COMMENT ON COLUMN jobs.target IS 'What the job calls, as the API shows it, without HTTP headers, as these may hold secrets.';
COMMENT ON COLUMN jobs.value IS 'The record that Redis is restored from: a packed head, a newline, the definition (msgpack). Not for queries.';

-- A name or key leads to its job and its last incarnation.
CREATE INDEX jobs_by_handle ON jobs (coalesce(name, idempotency_key), team, incarnation)
    WHERE coalesce(name, idempotency_key) IS NOT NULL;
-- Lists are newest first: of one state, of one team and state, with one tag.
CREATE INDEX jobs_by_state ON jobs (state, created_at);
CREATE INDEX jobs_by_team ON jobs (team, state, created_at);
CREATE INDEX jobs_by_tag ON jobs USING gin (tags) WHERE tags IS NOT NULL;
CREATE INDEX jobs_to_forget ON jobs (ended_at) WHERE ended_at IS NOT NULL AND NOT forgotten;
CREATE INDEX jobs_to_archive ON jobs (ended_at)
    WHERE forgotten AND name IS NULL AND idempotency_key IS NULL AND schedule_kind = 'o';
-- A background restore asks for active jobs by when they are due. Each job is in one of the three at most.
CREATE INDEX jobs_due_once ON jobs (due_once_at, job_id) WHERE state = 'active' AND NOT forgotten AND schedule_kind = 'o';
CREATE INDEX jobs_of_interval ON jobs (interval_ms, phase_ms, job_id)
    WHERE state = 'active' AND NOT forgotten AND schedule_kind = 'e';
CREATE INDEX jobs_of_schedule ON jobs (schedule_key, job_id)
    WHERE state = 'active' AND NOT forgotten AND schedule_kind = 'c';

CREATE TABLE skips (
    job_id     text COLLATE "C" NOT NULL,
    first_at   timestamptz NOT NULL,
    last_at    timestamptz NOT NULL,
    total      bigint NOT NULL,
    reason     text NOT NULL,
    skipped_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, first_at, last_at, reason, skipped_at)
);
COMMENT ON TABLE skips IS
    'Occurrences that made no run, with the reason. A run that was made and then skipped is in runs, with the status SKIPPED.';
COMMENT ON COLUMN skips.first_at IS 'The first of the occurrences that were skipped; last_at is the last one.';
COMMENT ON COLUMN skips.total IS 'How many occurrences; a lower bound where they were withdrawn before they were computed.';
COMMENT ON COLUMN skips.skipped_at IS 'When it was decided.';
CREATE INDEX skips_by_age ON skips (skipped_at);

CREATE TABLE catch_ups (
    shard            text NOT NULL,
    job_id           text COLLATE "C" NOT NULL,
    made_at          bigint NOT NULL,
    end_at           bigint NOT NULL,
    start_at         bigint NOT NULL,
    schedule_version bigint NOT NULL,
    flags            text NOT NULL,
    at               bigint NOT NULL,
    PRIMARY KEY (job_id, made_at, end_at)
);
COMMENT ON TABLE catch_ups IS
    'Ranges of occurrences that catch-up runs are made for (ms since 1970). Those from start_at to end_at are pending; start_at past end_at: none is.';
CREATE INDEX catch_ups_pending ON catch_ups (job_id) WHERE start_at <= end_at;

CREATE TABLE calendars (
    shard      text NOT NULL,
    team       text NOT NULL,
    name       text NOT NULL,
    version    bigint NOT NULL,
    updated_at bigint NOT NULL,
    body       bytea NOT NULL,
    PRIMARY KEY (team, name)
);
COMMENT ON TABLE calendars IS 'Holiday calendars of teams.';
COMMENT ON COLUMN calendars.body IS 'msgpack list of dates and date ranges; empty: the calendar was deleted.';

CREATE TABLE triggers (
    shard  text NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    hash   text COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    PRIMARY KEY (job_id, hash)
);
COMMENT ON TABLE triggers IS
    'Triggers that came with an idempotency key (hash): a repeat gets the manual run of at (ms since 1970). Kept for a day.';
CREATE INDEX triggers_by_age ON triggers (at);
