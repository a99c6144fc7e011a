-- Deletes a job and leaves a tombstone, so that a late write cannot bring it back. What has not started is withdrawn
-- when it is fetched; a running attempt ends by itself.
-- MOVES
-- KEYS    shard pauses due heads jobs body occurrences definitions signals
-- ARGV    generation:text job:text expect:int
--         expect 0: whatever its version.
-- REPLY   ok now journal_id version | missing now | conflict now | closed | stale_generation generation
-- COST    7 calls
--include guard
--include now_ms
--include journal
--include head_parse
--include overdue
--include head_pack
--include job_write
--include due_set
--include partition_of
--include check_types
--include check_job_types
--include codes
--include event_job
--include key
--include text
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'heads', 'pauses'}, {})
local now = now_ms()
local partition = partition_of(a_job)
check_job_types(partition)
local head = head_parse(redis.call('HGET', key('jobs', partition, 0), a_job))
if not head or head.state == JOB_STATE.DELETED then return {'missing', text(now)} end
if a_expect > 0 and head.version ~= a_expect then return {'conflict', text(now)} end
local events = {}
overdue(events, a_job, partition, head, now, 'deleted')
head.state, head.version = JOB_STATE.DELETED, head.version + 1
head.schedule_version, head.schedule_changed_at, head.rest = head.schedule_version + 1, now, '\n'
local value = head_pack(head)
event_job(events, a_job, value)
local id = journal('definitions', marker.generation, events)
job_write(partition, a_job, value)
due_set(partition, a_job, '')
redis.call('ZREM', key('pauses'), a_job)
return {'ok', text(now), id, text(head.version)}
