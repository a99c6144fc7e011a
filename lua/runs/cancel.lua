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
--include codes
--include event_run
--include job_of
--include key
--include retry_member
--include text
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'retries'}, {})
local now_at = now_ms()
local now = text(now_at)
local record = run_parse(redis.call('HGET', key('runs'), a_run))
if not record then return {'missing', now} end
local events, freed = {}, {freed = {}, payloads = {}}
run_ended(freed, a_run, record.flags)
local last = string.find(record.flags, FLAG.LAST, 1, true)
record.revision = record.revision + 1
if record.state == STATE.RUNNING then
  if not string.find(record.flags, FLAG.CANCEL, 1, true) then record.flags = record.flags .. FLAG.CANCEL end
  local packed = run_pack(record)
  event_run(events, a_run, packed, now, '')
  local id = journal('definitions', marker.generation, events)
  redis.call('HSET', key('runs'), a_run, packed)
  redis.call('PUBLISH', key('signals'), 'cancel ' .. a_run)
  return {'cancelling', now, id}
end
record.state = STATE.CANCELLED
event_run(events, a_run, run_pack(record), now, 'cancelled before it started')
local completed = complete(last and {{job_of(a_run), record.schedule_version}} or {}, events)
local id = journal('definitions', marker.generation, events)
redis.call('HDEL', key('runs'), a_run)
redis.call('ZREM', key('staged'), staged_member(a_run, record.queue_key, record.flags))
redis.call('ZREM', key('retries'), retry_member(a_run, record.queue_key))
complete_write(completed)
run_ended_write(freed, now_at)
return {'ok', now, id}
