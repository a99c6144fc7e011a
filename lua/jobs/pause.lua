-- Stops a job's schedule: what is due from now on is not claimed, what was claimed for later is withdrawn. The head keeps
-- the first occurrence that was not claimed, from which resume counts what was missed. A paused job may get another note or
-- end of its pause.
-- MOVES
-- KEYS    shard pauses due heads jobs body definitions signals
-- ARGV    generation:text job:text expect:int ends:text missed:text note:text
--         expect 0: whatever its version. ends: when the pause ends by itself, '' for never; missed: o, a or s, what is done then
--         about what was missed; note: percent-encoded.
-- REPLY   ok now journal_id version | already now version | missing now | conflict now | completed now | closed | stale_generation generation
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
--include extras_set
--include extras
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'heads', 'pauses'}, {})
local now = now_ms()
local p = partition_of(a_job)
check_job_types(p)
local head = job_read(p, a_job)
if not head or head.state == 'd' then return {'missing', text(now)} end
if a_expect > 0 and head.version ~= a_expect then return {'conflict', text(now)} end
if head.state == 'c' then return {'completed', text(now)} end
local fields = extras(head)
if head.state == 'p' then
  if fields[4] == a_ends and fields[5] == a_missed and fields[6] == a_note then
    return {'already', text(now), text(head.version)}
  end
  head.version = head.version + 1
else
  local due = redis.call('ZSCORE', key('due', p, 0), a_job)
  fields[1] = due and text(tonumber(due)) or ''
  head.state, head.version, head.schedule_version, head.schedule_changed_at = 'p', head.version + 1, head.schedule_version + 1, now
end
fields[4], fields[5], fields[6], fields[7] = a_ends, a_missed, a_note, ''
extras_set(head, fields)
local value = head_pack(head)
local id = journal('definitions', marker.generation, {'j', a_job .. '\n' .. value})
job_write(p, a_job, value)
due_set(p, a_job, '')
if a_ends == '' then redis.call('ZREM', key('pauses'), a_job) else redis.call('ZADD', key('pauses'), a_ends, a_job) end
return {'ok', text(now), id, text(head.version)}
