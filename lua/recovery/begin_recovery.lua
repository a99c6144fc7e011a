-- Begins the recovery of a shard on this server under a new generation; until `open` only adopt and repair verbs pass.
-- MOVES
-- KEYS    shard workers unconfirmed fence
-- ARGV    generation:text fence:text seen_after_ms:int lost:int whole:int
--         fence: the floor, from Postgres. seen_after_ms: workers silent for longer, and for longer than their
--         lease, are not waited for.
--         lost 1: Redis lost writes, so that it may not know all workers, whatever server it was on. whole 1: it was closed as
--         planned, and not opened since.
-- REPLY   ok now fence | stale now generation
-- COST    12 calls, 1 a worker
--include key
--include text
--include server_ids
--include now_ms
local now = now_ms()
local m = redis.call('HMGET', KEYS[1], 'generation', 'state', 'run_id', 'repl_id', 'fence_seen', 'recovery_grace_ms', 'recovery_grace_until')
if m[1] and tonumber(m[1]) >= tonumber(a_generation) then return {'stale', text(now), m[1]} end
local run, repl = server_ids()
-- A server that was started, or took over, may lack the last writes, however complete it looks: those of a worker that came and
-- fetched in them are known to nobody if they were not recorded either. A recovery that was not finished, and one whose hold is
-- not over, hand this on.
local handed_on = (m[2] == 'recovering' or now < tonumber(m[7] or '0')) and redis.call('SISMEMBER', key('unconfirmed'), '') == 1
local another = handed_on or (m[1] and (m[3] ~= run or m[4] ~= repl))
-- The greatest fence of which this Redis knows what became of it; a recovery that was not finished has raised the counter.
local counter = redis.call('GET', key('fence')) or '0'
local fence_seen = m[2] == 'recovering' and m[5] or counter
local fence = math.max(tonumber(counter), tonumber(a_fence))
local known = redis.call('HGETALL', key('workers'))
local workers, newest = {}, 0
for i = 1, #known, 2 do
  local seen, lease = string.match(known[i + 1], '^(%d+)|[^|]*|?(%d*)$')
  if seen then
    workers[#workers + 1] = {known[i], tonumber(seen), tonumber(lease or '') or 0}
    newest = math.max(newest, tonumber(seen))
  end
end
-- The state that came back may be old: whoever was at work then may be now.
local as_of = another and math.min(now, newest) or now
redis.call('HSET', KEYS[1], 'generation', a_generation, 'state', 'recovering', 'run_id', run, 'repl_id', repl,
  'closed_at', text(now), 'recovery_grace_until', '0', 'lost', text(a_lost), 'fence_seen', fence_seen)
redis.call('SET', key('fence'), text(fence))
redis.call('DEL', key('unconfirmed'))
if handed_on or (another and a_whole == 0) or a_lost == 1 then redis.call('SADD', key('unconfirmed'), '') end
-- Who has adopted since the closing was heard of now; the others are of the state that came back.
local longest = m[2] == 'recovering' and tonumber(m[6] or '0') or 0
for i = 1, #workers do
  local w = workers[i]
  if w[2] > as_of - math.max(a_seen_after_ms, w[3]) then
    redis.call('SADD', key('unconfirmed'), w[1])
    longest = math.max(longest, w[3])
  end
end
-- How long the hold may last: the longest lease of those who are known to be at work.
redis.call('HSET', KEYS[1], 'recovery_grace_ms', text(longest))
return {'ok', text(now), text(fence)}
