-- Sets how far work is cut back for want of memory: the very write that has to pass when memory has run out.
-- MOVES
-- KEYS    shard
-- ARGV    generation:text step:text
-- REPLY   ok now | closed | stale_generation generation
-- COST    2 calls
-- FLAGS   allow-oom
--include guard
--include now_ms
--include text
local refusal = guard(a_generation)
if refusal then return refusal end
local now = now_ms()
redis.call('HSET', KEYS[1], 'load_level', a_step)
return {'ok', text(now)}
