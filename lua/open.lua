-- Ends the opening of a shard: from here every verb passes; runs due before the closing are held for up to the
-- longest lease that a worker is known to have, or hold_ms where that is not known.
-- MOVES
-- KEYS    shard signals
-- ARGV    generation:text hold_ms:int
-- REPLY   ok now | closed
-- COST    5 calls
--include text
--include recovering
--include now_ms
--include signal_due
local refusal = recovering(a_generation)
if refusal then return refusal end
local now = now_ms()
local hold = tonumber(redis.call('HGET', KEYS[1], 'hold_ms') or '') or a_hold_ms
redis.call('HSET', KEYS[1], 'state', 'open', 'hold_until', text(now + hold))
signal_due(text(now))
return {'ok', text(now)}
