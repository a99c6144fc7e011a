-- works with: 4
-- The watermarks as a rebuild found them: those of the shard move on with each claim, and what is not back by then was not
-- claimed. Kept until all is back, so that a recorder which goes on with another's rebuild counts from the same.
CREATE TABLE restore_watermarks (
    shard     text NOT NULL,
    partition integer NOT NULL,
    ms        bigint NOT NULL,
    PRIMARY KEY (shard, partition)
);
