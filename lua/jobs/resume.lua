-- Starts a paused (or invalid) job's schedule again from the due instant given; what was missed meanwhile goes on record, as
-- skipped, as one run or as a catch-up range.
-- MOVES   none -> QUEUED, QUEUED -> QUEUED, QUEUED -> SKIPPED
-- KEYS    shard unconfirmed pauses due heads jobs body runs active payloads staged catchup definitions signals
-- ARGV    generation:text job:text expect:int due:text first:text last:text count:int run_at:text from:text to:text
--         items:[ahead:int]
--         expect: the version that due was computed from. first, last, count: the occurrences skipped while paused. run_at: the
--         one to run now; from, to: those to catch up; '' for none. ahead: occurrences that were claimed ahead for after the
--         pause.
-- REPLY   ok now journal_id version | already now version | missing now | conflict now | completed now | closed |
--         stale_generation generation
-- COST    9 calls
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
--include variadic
--include run_create
--include overlap_of
--include run_reschedule
--include run_parse
--include run_ended_write
--include run_ended
--include fetch_all
--include in_recovery_grace
--include late_due
--include codes
--include event_catchup
--include event_job
--include event_run
--include event_skip
--include key
--include optional_parse
--include optional_write
--include range_pack
--include run_pack
--include signal_due
--include text
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'heads', 'pauses', 'staged', 'catchup'}, {'runs'})
local now = now_ms()
local partition = partition_of(a_job)
check_job_types(partition)
local head = job_read(partition, a_job)
if not head or head.state == JOB_STATE.DELETED then return {'missing', text(now)} end
if head.version ~= a_expect then return {'conflict', text(now)} end
if head.state == JOB_STATE.ACTIVE then return {'already', text(now), text(head.version)} end
if head.state == JOB_STATE.COMPLETED then return {'completed', text(now)} end
-- Computed too long ago.
if head.kind ~= SCHEDULE.INSTANT and a_due ~= '' and tonumber(a_due) <= now then return {'conflict', text(now)} end
head.state, head.version = JOB_STATE.ACTIVE, head.version + 1
head.schedule_version, head.schedule_changed_at = head.schedule_version + 1, now
local optional = optional_parse(head)
optional.paused_from, optional.paused_until, optional.missed, optional.note, optional.keeps = '', '', '', '', ''
optional_write(head, optional)
if a_due == '' and a_run_at == '' and a_to == '' then head.state = JOB_STATE.COMPLETED end
local value = head_pack(head)
local at, last = text(now), a_due == '' and FLAG.LAST or ''
local out = {events = {}, records = {}, staged = {}}
event_job(out.events, a_job, value)
if a_count > 0 then event_skip(out.events, a_job, a_first, a_last, text(a_count), 'paused', at) end
if a_run_at ~= '' then
  local run = a_job .. ':' .. a_run_at
  local old = run_parse(redis.call('HGET', key('runs'), run))
  if old then run_reschedule(out, run, old, head, at, last)
  else
    local closed = in_recovery_grace(marker, now) and marker.closed_at
    run_create(out, run, head, late_due(closed, a_run_at, now), at, last, overlap_of(head))
  end
end
-- Claimed ahead of the pause and not started: withdrawn, unless it is one of those that are wanted now.
local ahead, gone = {}, {}
local freed = {freed = {}, payloads = {}}
for i = group_at, #ARGV do ahead[#ahead + 1] = a_job .. ':' .. ARGV[i] end
local values = fetch_all(key('runs'), ahead)
for i = 1, #ahead do
  local record = run_parse(values[i])
  local instant = tonumber(ARGV[group_at + i - 1])
  local wanted = (a_run_at ~= '' and instant == tonumber(a_run_at))
    or (a_to ~= '' and instant >= tonumber(a_from) and instant <= tonumber(a_to))
  if record and record.state == STATE.QUEUED and record.schedule_version < head.schedule_version and not wanted then
    record.state, record.revision = STATE.SKIPPED, record.revision + 1
    event_run(out.events, ahead[i], run_pack(record), at, 'paused')
    gone[#gone + 1] = ahead[i]
    run_ended(freed, ahead[i], record.flags)
  end
end
local range = nil
if a_to ~= '' then
  range = {job = a_job, from = a_from, to = a_to, schedule_version = text(head.schedule_version), flags = last, made_at = at}
  event_catchup(out.events, range, at)
end
local id = journal('definitions', marker.generation, out.events)
job_write(partition, a_job, value)
variadic('HSET', key('runs'), out.records, 2)
variadic('HDEL', key('runs'), gone, 1)
run_ended_write(freed, now)
variadic('ZADD', key('staged'), out.staged, 2)
if range then redis.call('ZADD', key('catchup'), at, range_pack(range)) end
if #out.staged > 0 then signal_due(at) end
due_set(partition, a_job, a_due)
redis.call('ZREM', key('pauses'), a_job)
return {'ok', text(now), id, text(head.version)}
