-- Begins the opening of a shard on this server under a new generation; until `open` only adopt and repair verbs pass.
-- MOVES
-- KEYS    shard workers holders fence
-- ARGV    generation:text fence:text seen_after_ms:int lost:int
--         fence: the floor, from Postgres. seen_after_ms: workers silent for longer, and for longer than their
--         lease, are not waited for.
--         lost 1: Redis may not know all workers, so that the hold has to last one full lease.
-- REPLY   ok now fence | stale now generation
-- COST    8 calls, 1 a worker
--include key
--include text
--include server_ids
--include now_ms
local now = now_ms()
local present = redis.call('HGET', KEYS[1], 'generation')
if present and tonumber(present) >= tonumber(a_generation) then return {'stale', text(now), present} end
local run, repl = server_ids()
-- The greatest fence of which this Redis knows what became of it; an opening that was not finished has raised the counter.
local seen = redis.call('HMGET', KEYS[1], 'state', 'fence_seen')
seen = seen[1] == 'recovering' and seen[2] or redis.call('GET', key('fence')) or '0'
local fence = math.max(tonumber(redis.call('GET', key('fence')) or '0'), tonumber(a_fence))
local workers = redis.call('HGETALL', key('workers'))
redis.call('HSET', KEYS[1], 'generation', a_generation, 'state', 'recovering', 'run_id', run, 'repl_id', repl,
  'closed_at', text(now), 'hold_until', '0', 'lost', text(a_lost), 'fence_seen', seen)
redis.call('SET', key('fence'), text(fence))
redis.call('DEL', key('holders'))
local longest = 0
if a_lost == 1 then redis.call('SADD', key('holders'), '') end
for i = 1, #workers, 2 do
  local seen, lease = string.match(workers[i + 1], '^(%d+)|[^|]*|?(%d*)$')
  lease = tonumber(lease or '') or 0
  if seen and tonumber(seen) > now - math.max(a_seen_after_ms, lease) then
    redis.call('SADD', key('holders'), workers[i])
    longest = math.max(longest, lease)
  end
end
-- How long the hold may last: the longest lease of those who are known to be at work.
redis.call('HSET', KEYS[1], 'hold_ms', text(longest))
return {'ok', text(now), text(fence)}
