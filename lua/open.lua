-- Ends the opening of a shard: from here every verb passes; runs due before the closing are held for up to the
-- longest lease that a worker is known to have, and at least hold_ms where there may be others.
-- MOVES
-- KEYS    shard holders signals
-- ARGV    generation:text hold_ms:int
-- REPLY   ok now | closed
-- COST    7 calls
--include text
--include recovering
--include key
--include now_ms
--include signal_due
local refusal = recovering(a_generation)
if refusal then return refusal end
local now = now_ms()
local hold = tonumber(redis.call('HGET', KEYS[1], 'hold_ms') or '0')
if redis.call('SISMEMBER', key('holders'), '') == 1 then hold = math.max(hold, a_hold_ms) end
redis.call('HSET', KEYS[1], 'state', 'open', 'hold_until', text(now + hold))
signal_due(text(now))
return {'ok', text(now)}
