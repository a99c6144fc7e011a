-- Runs whose day has left stay here while they are open, DEAD or ended only lately, and so do events that come late: every
-- query and upsert goes on through runs and attempts as before.
CREATE TABLE runs_kept PARTITION OF runs DEFAULT WITH (fillfactor = 70);
CREATE TABLE attempts_kept PARTITION OF attempts DEFAULT;

-- What left the tables for the archive. day: of a partition, which is never made again; NULL for a sweep of what was kept.
-- From left_at to archived_at its rows are in tables called leaving_<table>_<name>.
CREATE TABLE archived (
    name        text PRIMARY KEY,
    day         date UNIQUE,
    left_at     timestamptz NOT NULL DEFAULT now(),
    archived_at timestamptz
);
CREATE INDEX archived_not_yet ON archived (name) WHERE archived_at IS NULL;

CREATE INDEX skips_by_age ON skips (at);
