-- Takes a job whose schedule cannot be computed out of the due set, as `invalid`, so that it stops nobody else; what was due
-- by now goes on record.
-- MOVES
-- KEYS    shard due heads pauses jobs body occurrences definitions signals
-- ARGV    generation:text job:text schedule_version:int
-- REPLY   ok now journal_id | stale now | closed | stale_generation generation
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
--include overdue
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
if not head or (head.state ~= JOB_STATE.ACTIVE and head.state ~= JOB_STATE.PAUSED)
    or head.schedule_version ~= a_schedule_version then
  return {'stale', text(now)}
end
local events = {}
overdue(events, a_job, partition, head, now, 'invalid')
local optional = optional_parse(head)
optional.paused_from, optional.paused_until, optional.missed, optional.note = '', '', '', ''
optional_write(head, optional)
head.state, head.version = JOB_STATE.INVALID, head.version + 1
local value = head_pack(head)
event_job(events, a_job, value)
local id = journal('definitions', marker.generation, events)
job_write(partition, a_job, value)
due_set(partition, a_job, '')
redis.call('ZREM', key('pauses'), a_job)
return {'ok', text(now), id}
