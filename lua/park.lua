-- Takes a job whose schedule cannot be computed out of the due set, as `invalid`, so that it stops nobody else.
-- MOVES
-- KEYS    shard due heads jobs body definitions signals
-- ARGV    generation:text job:text sv:int
-- REPLY   ok now journal_id | stale now | closed | reopened generation
-- COST    7 calls
--include guard
--include now_ms
--include journal
--include job_read
--include head_pack
--include job_write
--include due_set
--include partition_of
--include typed
--include typed_job
local refusal, marker = guard(a_generation)
if refusal then return refusal end
typed({'heads'}, {})
local now = now_ms()
local p = partition_of(a_job)
typed_job(p)
local head = job_read(p, a_job)
if not head or head.state ~= 'a' or head.sv ~= a_sv then return {'stale', text(now)} end
head.state, head.version = 'i', head.version + 1
local value = head_pack(head)
local id = journal('definitions', marker.generation, {'j', a_job .. '\n' .. value})
job_write(p, a_job, value)
due_set(p, a_job, '')
return {'ok', text(now), id}
