-- Ends the recovery of a shard: from here every verb passes. The recovery grace period, in which runs due before the closing are
-- held back, is up to the longest lease that a worker is known to have, and at least recovery_grace_ms where there may be others.
-- MOVES
-- KEYS    shard unconfirmed signals
-- ARGV    generation:text recovery_grace_ms:int
-- REPLY   ok now | closed
-- COST    7 calls
--include text
--include recovery_guard
--include key
--include now_ms
--include signal_due
local refusal = recovery_guard(a_generation)
if refusal then return refusal end
local now = now_ms()
local grace_ms = tonumber(redis.call('HGET', KEYS[1], 'recovery_grace_ms') or '0')
if redis.call('SISMEMBER', key('unconfirmed'), '') == 1 then grace_ms = math.max(grace_ms, a_recovery_grace_ms) end
redis.call('HSET', KEYS[1], 'state', 'open', 'recovery_grace_until', text(now + grace_ms))
signal_due(text(now))
return {'ok', text(now)}
