-- Begins the recovery of a shard on this server under a new generation; until it is finished only adopt and the verbs of
-- recovery pass.
-- MOVES
-- KEYS    shard workers unconfirmed fence
-- ARGV    generation:text fence:text seen_after_ms:int lost:int whole:int
--         fence: the floor, from Postgres. seen_after_ms: workers silent for longer, and for longer than their
--         lease, are not waited for.
--         lost 1: Redis lost writes, so that it may not know all workers, whatever server it was on. whole 1: it was closed as
--         planned, and has not recovered since.
-- REPLY   ok now fence | stale now generation
-- COST    12 calls, 1 a worker
--include key
--include text
--include server_ids
--include now_ms
local now = now_ms()
local marker = redis.call('HMGET', KEYS[1], 'generation', 'state', 'run_id', 'repl_id', 'fence_seen', 'recovery_grace_ms',
  'recovery_grace_until')
local generation, state, server, replication, fence_before, grace_ms, grace_until = unpack(marker, 1, 7)
if generation and tonumber(generation) >= tonumber(a_generation) then return {'stale', text(now), generation} end
local this_server, this_replication = server_ids()
local unfinished = state == 'recovering'
-- A server that was started, or took over, may lack the last writes, however complete it looks: those of a worker that came and
-- fetched in them are known to nobody if they were not recorded either. A recovery that was not finished, and one whose
-- grace period is not over, hand this on.
local handed_on = (unfinished or now < tonumber(grace_until or '0')) and redis.call('SISMEMBER', key('unconfirmed'), '') == 1
local another = handed_on or (generation and (server ~= this_server or replication ~= this_replication))
-- The greatest fence of which this Redis knows what became of it; a recovery that was not finished has raised the counter.
local counter = redis.call('GET', key('fence')) or '0'
local fence_seen = unfinished and fence_before or counter
local fence = math.max(tonumber(counter), tonumber(a_fence))
local known = redis.call('HGETALL', key('workers'))
local workers, newest = {}, 0
for i = 1, #known, 2 do
  local seen, lease = string.match(known[i + 1], '^(%d+)|[^|]*|?(%d*)$')
  if seen then
    workers[#workers + 1] = {name = known[i], seen = tonumber(seen), lease = tonumber(lease or '') or 0}
    newest = math.max(newest, tonumber(seen))
  end
end
-- The state that came back may be old: whoever was at work then may be now.
local as_of = another and math.min(now, newest) or now
redis.call('HSET', KEYS[1], 'generation', a_generation, 'state', 'recovering', 'run_id', this_server,
  'repl_id', this_replication,
  'closed_at', text(now), 'recovery_grace_until', '0', 'lost', text(a_lost), 'fence_seen', fence_seen)
redis.call('SET', key('fence'), text(fence))
redis.call('DEL', key('unconfirmed'))
if handed_on or (another and a_whole == 0) or a_lost == 1 then redis.call('SADD', key('unconfirmed'), '') end
-- Who has adopted since the closing was heard of now; the others are of the state that came back.
local longest = unfinished and tonumber(grace_ms or '0') or 0
for _, worker in ipairs(workers) do
  if worker.seen > as_of - math.max(a_seen_after_ms, worker.lease) then
    redis.call('SADD', key('unconfirmed'), worker.name)
    longest = math.max(longest, worker.lease)
  end
end
-- How long the grace period may last: the longest lease of those who are known to be at work.
redis.call('HSET', KEYS[1], 'recovery_grace_ms', text(longest))
return {'ok', text(now), text(fence)}
