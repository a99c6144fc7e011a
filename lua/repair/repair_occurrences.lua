-- Drops a schedule's occurrence cache that is wrong, if it is still the one that the caller saw; the next claim has it filled
-- again.
-- MOVES
-- KEYS    shard occurrences
-- ARGV    generation:text schedule:text digest:text
--         digest: SHA-1 of its entries, with a space between.
-- REPLY   ok now | stale now | closed | stale_generation generation
-- COST    2 calls
--include guard
--include now_ms
--include key
--include text
local refusal = guard(a_generation)
if refusal then return refusal end
local cache = key('occurrences', a_schedule)
local at = text(now_ms())
if redis.sha1hex(table.concat(redis.call('ZRANGE', cache, 0, -1, 'WITHSCORES'), ' ')) ~= a_digest then return {'stale', at} end
redis.call('DEL', cache)
return {'ok', at}
