-- Closes the shard before its server is stopped as planned: nothing passes any more, so that a server which comes back in this
-- state, with no later recovery on record, has all that there was.
-- MOVES
-- KEYS    shard
-- ARGV    generation:text
-- REPLY   ok now | closed | stale_generation generation
-- COST    2 calls
-- FLAGS   allow-oom
--include guard
--include now_ms
--include text
local refusal = guard(a_generation)
if refusal then return refusal end
local now = now_ms()
redis.call('HSET', KEYS[1], 'state', 'closed')
return {'ok', text(now)}
