-- Cancels a run: at once if it has not started, else by asking its worker to stop it.
-- MOVES   QUEUED -> CANCELLED, RETRYING -> CANCELLED
-- KEYS    shard active payloads runs staged retries jobs body due definitions signals
-- ARGV    generation:text run:text
-- REPLY   ok now journal_id | cancelling now journal_id | missing now | closed | stale_generation generation
-- COST    8 calls
--include guard
--include now_ms
--include journal
--include run_parse
--include run_pack
--include complete
--include complete_write
--include check_types
--include staged_member
--include run_ended_write
--include run_ended
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'retries'}, {})
local now_at = now_ms()
local now = text(now_at)
local r = run_parse(redis.call('HGET', key('runs'), a_run))
if not r then return {'missing', now} end
local freed = {freed = {}, payloads = {}}
run_ended(freed, a_run, r.flags)
local last = string.find(r.flags, 'L', 1, true)
r.revision = r.revision + 1
if r.state == 'R' then
  if not string.find(r.flags, 'X', 1, true) then r.flags = r.flags .. 'X' end
  local record = run_pack(r)
  local id = journal('definitions', marker.generation, {'r', a_run .. '\n' .. record .. '\n' .. now .. '\n'})
  redis.call('HSET', key('runs'), a_run, record)
  redis.call('PUBLISH', key('signals'), 'cancel ' .. a_run)
  return {'cancelling', now, id}
end
r.state = 'C'
local events = {'r', a_run .. '\n' .. run_pack(r) .. '\n' .. now .. '\ncancelled before it started'}
local done = complete(last and {{string.sub(a_run, 1, 15), r.schedule_version}} or {}, events)
local id = journal('definitions', marker.generation, events)
redis.call('HDEL', key('runs'), a_run)
redis.call('ZREM', key('staged'), staged_member(a_run, r.queue_key, r.flags))
redis.call('ZREM', key('retries'), a_run .. '|' .. r.queue_key)
complete_write(done)
run_ended_write(freed, now_at)
return {'ok', now, id}
