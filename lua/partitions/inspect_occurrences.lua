-- All entries of a schedule's occurrence cache, for the caller to compute again.
-- MOVES
-- KEYS    shard occurrences
-- ARGV    generation:text schedule:text
-- REPLY   ok now entries:[member score]... | closed | stale_generation generation
-- COST    1 call
--include guard
--include now_ms
--include key
--include text
local refusal = guard(a_generation)
if refusal then return refusal end
return {'ok', text(now_ms()), redis.call('ZRANGE', key('occurrences', a_schedule), 0, -1, 'WITHSCORES')}
