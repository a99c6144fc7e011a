-- Runs. People read the views `runs` and `attempts`; the tables below them are laid out for size and speed.
--
-- A run is in unfinished_runs until it ends, a small table in which every move updates or deletes a row. Its end inserts one row into
-- the partition of the day on which it was claimed. So history has no dead rows, and nobody looks through it for what is unfinished.

CREATE TYPE run_status AS ENUM ('QUEUED', 'RUNNING', 'RETRYING', 'SUCCEEDED', 'DEAD', 'CANCELLED', 'SKIPPED');

-- Columns are in the order of their alignment. manual: 0 for the run of an occurrence; for one that was triggered by hand 1 + the number
-- that the last four characters of its run_id write. error is '' where there is none, as a row without NULLs is 8 bytes shorter.
CREATE TABLE finished_runs (
    scheduled_at     timestamptz NOT NULL,
    claimed_at       timestamptz NOT NULL,
    due_at           timestamptz,
    started_at       timestamptz,
    ended_at         timestamptz NOT NULL,
    fence            bigint NOT NULL,
    claimed_on       date NOT NULL,
    manual           integer NOT NULL,
    status           run_status NOT NULL CHECK (status NOT IN ('QUEUED', 'RUNNING', 'RETRYING')),
    revision         integer NOT NULL,
    schedule_version integer NOT NULL,
    queue_key        integer NOT NULL,
    worker           integer NOT NULL,
    attempt          smallint NOT NULL,
    job_id           text COLLATE "C" NOT NULL,
    flags            text NOT NULL,
    error            text NOT NULL,
    PRIMARY KEY (job_id, scheduled_at, manual, claimed_on)
) PARTITION BY RANGE (claimed_on);
COMMENT ON TABLE finished_runs IS 'Runs that have ended, by the day (UTC) on which they were claimed. Query the view runs.';
-- What ran within an hour of a day.
CREATE INDEX finished_runs_by_end ON finished_runs USING brin (ended_at);
-- Few runs are skipped; a job's are found without reading its other ones.
CREATE INDEX finished_runs_skipped ON finished_runs (job_id, scheduled_at) WHERE status = 'SKIPPED';

-- Runs whose day has left for the archive stay here while they are DEAD or ended only lately, and so do ends that come late.
CREATE TABLE finished_runs_kept PARTITION OF finished_runs DEFAULT;

CREATE TABLE unfinished_runs (
    scheduled_at     timestamptz NOT NULL,
    claimed_at       timestamptz NOT NULL,
    due_at           timestamptz,
    started_at       timestamptz,
    fence            bigint NOT NULL,
    claimed_on       date NOT NULL,
    manual           integer NOT NULL,
    status           run_status NOT NULL CHECK (status IN ('QUEUED', 'RUNNING', 'RETRYING')),
    revision         integer NOT NULL,
    schedule_version integer NOT NULL,
    queue_key        integer NOT NULL,
    worker           integer NOT NULL,
    attempt          smallint NOT NULL,
    job_id           text COLLATE "C" NOT NULL,
    flags            text NOT NULL,
    error            text NOT NULL,
    PRIMARY KEY (job_id, scheduled_at, manual)
-- Room on each page for the moves of its runs. The recorder vacuums the table itself, every few seconds.
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE unfinished_runs IS 'Runs that are QUEUED, RUNNING or RETRYING, with their latest record. Query the view runs.';

-- One row for each attempt that failed; the last attempt of a run is in the run's own row, too.
CREATE TABLE failed_attempts (
    scheduled_at timestamptz NOT NULL,
    due_at       timestamptz,
    started_at   timestamptz,
    ended_at     timestamptz NOT NULL,
    fence        bigint NOT NULL,
    claimed_on   date NOT NULL,
    manual       integer NOT NULL,
    status       run_status NOT NULL CHECK (status IN ('RETRYING', 'DEAD')),
    worker       integer NOT NULL,
    attempt      smallint NOT NULL,
    job_id       text COLLATE "C" NOT NULL,
    error        text NOT NULL,
    PRIMARY KEY (job_id, scheduled_at, manual, attempt, claimed_on)
) PARTITION BY RANGE (claimed_on);
COMMENT ON TABLE failed_attempts IS 'Attempts that failed, by the day (UTC) on which their run was claimed. Query the view attempts.';
CREATE TABLE failed_attempts_kept PARTITION OF failed_attempts DEFAULT;

CREATE TABLE dead_letters (
    ended_at     timestamptz NOT NULL,
    scheduled_at timestamptz NOT NULL,
    claimed_on   date NOT NULL,
    manual       integer NOT NULL,
    job_id       text COLLATE "C" NOT NULL,
    team         text COLLATE "C" NOT NULL,
    PRIMARY KEY (job_id, scheduled_at, manual)
);
COMMENT ON TABLE dead_letters IS 'Runs that are DEAD, to list them by age. The row in runs says so, too, and counts.';
CREATE INDEX dead_letters_by_age ON dead_letters (ended_at, job_id, scheduled_at, manual);
CREATE INDEX dead_letters_of_team ON dead_letters (team, ended_at, job_id, scheduled_at, manual);

CREATE TABLE payloads (
    run_id      text COLLATE "C" PRIMARY KEY,
    payload     bytea NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE payloads IS 'What runs with a payload of their own are called with (msgpack).';

CREATE TABLE archived (
    name        text PRIMARY KEY,
    day         date UNIQUE,
    left_at     timestamptz NOT NULL DEFAULT now(),
    archived_at timestamptz
);
COMMENT ON TABLE archived IS
    'What left the tables for the archive. From left_at to archived_at its rows are in tables called leaving_<table>_<name>.';
COMMENT ON COLUMN archived.day IS 'Of a partition, which is never made again; NULL for a sweep of what was kept longer.';
CREATE INDEX archived_not_yet ON archived (name) WHERE archived_at IS NULL;

-- The id by which the API and Redis know a run.
CREATE FUNCTION run_id_of(job_id text, scheduled_at timestamptz, manual integer) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN manual = 0 THEN job_id || ':' || ms_of(scheduled_at)
        ELSE job_id || ':m-' || ms_of(scheduled_at) || '-'
            || substr('0123456789abcdefghjkmnpqrstvwxyz', (manual - 1) / 32768 % 32 + 1, 1)
            || substr('0123456789abcdefghjkmnpqrstvwxyz', (manual - 1) / 1024 % 32 + 1, 1)
            || substr('0123456789abcdefghjkmnpqrstvwxyz', (manual - 1) / 32 % 32 + 1, 1)
            || substr('0123456789abcdefghjkmnpqrstvwxyz', (manual - 1) % 32 + 1, 1) END
$$;

CREATE VIEW all_runs AS
    SELECT job_id, scheduled_at, manual, claimed_on, status, revision, queue_key, schedule_version, attempt, fence, worker, claimed_at,
        due_at, started_at, flags, NULL::timestamptz AS ended_at, error FROM unfinished_runs
    UNION ALL
    SELECT job_id, scheduled_at, manual, claimed_on, status, revision, queue_key, schedule_version, attempt, fence, worker, claimed_at,
        due_at, started_at, flags, ended_at, error FROM finished_runs;
COMMENT ON VIEW all_runs IS 'unfinished_runs and finished_runs as one, for rsched itself. Query the view runs.';

CREATE VIEW runs AS
    SELECT run_id_of(r.job_id, r.scheduled_at, r.manual) AS run_id, r.job_id, q.team, q.queue, q.priority, r.status, r.attempt, r.fence,
        w.name AS worker, r.scheduled_at, r.due_at, r.started_at, r.ended_at, nullif(r.error, '') AS error, r.manual > 0 AS manual,
        r.claimed_at, r.claimed_on, q.shard, r.revision, r.schedule_version, r.flags
    FROM all_runs r LEFT JOIN queue_keys q ON q.id = r.queue_key LEFT JOIN worker_names w ON w.id = r.worker;
COMMENT ON VIEW runs IS
    'One row for each run. A run that was withdrawn and claimed again on another day has two: the greater (fence, revision) counts.';
COMMENT ON COLUMN runs.run_id IS 'Derived. To find one run, ask for its job_id and scheduled_at, which are indexed.';
COMMENT ON COLUMN runs.claimed_on IS 'The day (UTC) of claimed_at. Ask for days by it: each day is a table of its own, and the others are not read.';
COMMENT ON COLUMN runs.scheduled_at IS 'The instant that the schedule gave, or the trigger.';
COMMENT ON COLUMN runs.due_at IS 'When the latest attempt was due; started_at - due_at is its lateness.';
COMMENT ON COLUMN runs.error IS 'Why the last attempt failed, or why the run was skipped or cancelled.';
COMMENT ON COLUMN runs.fence IS 'Number of the latest attempt that only grows within a shard.';
COMMENT ON COLUMN runs.revision IS 'Grows with every move of the run; (fence, revision) orders all records of one run.';

CREATE VIEW attempts AS
    SELECT run_id_of(a.job_id, a.scheduled_at, a.manual) AS run_id, a.job_id, a.scheduled_at, a.attempt, a.fence, a.status,
        w.name AS worker, a.due_at, a.started_at, a.ended_at, a.error, a.claimed_on
    FROM failed_attempts a LEFT JOIN worker_names w ON w.id = a.worker;
COMMENT ON VIEW attempts IS 'One row for each attempt that failed.';
