-- Starts a paused (or invalid) job's schedule again from the due instant given; what was missed meanwhile goes on record.
-- MOVES
-- KEYS    shard due heads jobs body definitions signals
-- ARGV    generation:text job:text expect:int due:text first:text last:text count:int
--         expect: the version that due was computed from. first, last, count: the occurrences skipped while paused.
-- REPLY   ok now journal_id version | already now version | missing now | conflict now | completed now | closed | reopened generation
-- COST    8 calls
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
if head.version ~= a_expect then return {'conflict', text(now)} end
if head.state == 'a' then return {'already', text(now), text(head.version)} end
if head.state == 'c' then return {'completed', text(now)} end
-- Computed too long ago.
if head.kind ~= 'o' and a_due ~= '' and tonumber(a_due) <= now then return {'conflict', text(now)} end
head.state, head.version, head.sv, head.sv_at = 'a', head.version + 1, head.sv + 1, now
head.rest = string.match(head.rest, '\n.*$')
if a_due == '' then head.state = 'c' end
local value = head_pack(head)
local events = {'j', a_job .. '\n' .. value}
if a_count > 0 then
  events[3] = 'k'
  events[4] = table.concat({a_job, a_first, a_last, text(a_count), 'paused', text(now)}, '\n')
end
local id = journal('definitions', marker.generation, events)
job_write(p, a_job, value)
due_set(p, a_job, a_due)
return {'ok', text(now), id, text(head.version)}
