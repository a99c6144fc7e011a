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
--include extras_set
--include extras
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'heads', 'pauses'}, {})
local now = now_ms()
local p = partition_of(a_job)
check_job_types(p)
local head = job_read(p, a_job)
if not head or (head.state ~= 'a' and head.state ~= 'p') or head.schedule_version ~= a_schedule_version then return {'stale', text(now)} end
local events = {}
overdue(events, a_job, p, head, now, 'invalid')
local fields = extras(head)
fields[1], fields[4], fields[5], fields[6] = '', '', '', ''
extras_set(head, fields)
head.state, head.version = 'i', head.version + 1
local value = head_pack(head)
events[#events + 1] = 'j'
events[#events + 1] = a_job .. '\n' .. value
local id = journal('definitions', marker.generation, events)
job_write(p, a_job, value)
due_set(p, a_job, '')
redis.call('ZREM', key('pauses'), a_job)
return {'ok', text(now), id}
