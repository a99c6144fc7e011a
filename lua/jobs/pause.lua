-- Stops a job's schedule: what is due from now on is not claimed, what was claimed for later is withdrawn. The head keeps
-- the first occurrence that was not claimed, from which resume counts what was missed. A paused job may get another note or
-- end of its pause.
-- MOVES
-- KEYS    shard pauses due heads jobs body definitions signals
-- ARGV    generation:text job:text expect:int ends:text missed:text note:text
--         expect 0: whatever its version. ends: when the pause ends by itself, '' for never; missed: o, a or s, what is done then
--         about what was missed; note: percent-encoded.
-- REPLY   ok now journal_id version | already now version | missing now | conflict now | completed now | closed |
--         stale_generation generation
-- COST    7 calls
--include guard
--include now_ms
--include journal
--include job_read
--include head_pack
--include job_write
--include due_set
--include partition_of
--include check_types
--include check_job_types
--include codes
--include event_job
--include key
--include optional_parse
--include optional_write
--include text
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'heads', 'pauses'}, {})
local now = now_ms()
local partition = partition_of(a_job)
check_job_types(partition)
local head = job_read(partition, a_job)
if not head or head.state == JOB_STATE.DELETED then return {'missing', text(now)} end
if a_expect > 0 and head.version ~= a_expect then return {'conflict', text(now)} end
if head.state == JOB_STATE.COMPLETED then return {'completed', text(now)} end
local optional = optional_parse(head)
if head.state == JOB_STATE.PAUSED then
  if optional.paused_until == a_ends and optional.missed == a_missed and optional.note == a_note then
    return {'already', text(now), text(head.version)}
  end
  head.version = head.version + 1
else
  local due = redis.call('ZSCORE', key('due', partition, 0), a_job)
  optional.paused_from = due and text(tonumber(due)) or ''
  head.state, head.version = JOB_STATE.PAUSED, head.version + 1
  head.schedule_version, head.schedule_changed_at = head.schedule_version + 1, now
end
optional.paused_until, optional.missed, optional.note, optional.keeps = a_ends, a_missed, a_note, ''
optional_write(head, optional)
local value = head_pack(head)
local events = {}
event_job(events, a_job, value)
local id = journal('definitions', marker.generation, events)
job_write(partition, a_job, value)
due_set(partition, a_job, '')
if a_ends == '' then redis.call('ZREM', key('pauses'), a_job) else redis.call('ZADD', key('pauses'), a_ends, a_job) end
return {'ok', text(now), id, text(head.version)}
