-- Stops a job's schedule: what is due from now on is not claimed, what was claimed for later is withdrawn. The head keeps
-- the first occurrence that was not claimed, from which resume counts what was missed.
-- MOVES
-- KEYS    shard due heads jobs body definitions signals
-- ARGV    generation:text job:text expect:int
--         expect 0: whatever its version.
-- REPLY   ok now journal_id version | already now version | missing now | conflict now | completed now | closed | reopened generation
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
if not head or head.state == 'd' then return {'missing', text(now)} end
if a_expect > 0 and head.version ~= a_expect then return {'conflict', text(now)} end
if head.state == 'p' then return {'already', text(now), text(head.version)} end
if head.state == 'c' then return {'completed', text(now)} end
local due = redis.call('ZSCORE', key('due', p, 0), a_job)
head.state, head.version, head.sv, head.sv_at = 'p', head.version + 1, head.sv + 1, now
head.rest = (due and '|' .. text(tonumber(due)) or '') .. string.match(head.rest, '\n.*$')
local value = head_pack(head)
local id = journal('definitions', marker.generation, {'j', a_job .. '\n' .. value})
job_write(p, a_job, value)
due_set(p, a_job, '')
return {'ok', text(now), id, text(head.version)}
