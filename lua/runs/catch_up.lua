-- Enqueues runs for the next occurrences of a catch-up range; the range moves on in the same step. Of a job that was
-- paused, rescheduled or deleted since, the rest is skipped on record.
-- MOVES   none -> QUEUED, QUEUED -> QUEUED
-- KEYS    shard unconfirmed paces catchup jobs runs staged journal signals restore
-- ARGV    generation:text member:text score:text rest:text pace_ms:int most:int left:int items:[at:text]
--         rest: the range that is left, '' when nothing is. score: as the caller saw it. left: how many occurrences the range
--         still has, for the record if they are skipped; 0 where nobody can count them. most: how many runs the job may get
--         in pace_ms, of all its ranges.
-- REPLY   ok now count | stale now | paced now | gone now | closed | stale_generation generation
-- COST    8 calls; variadic over the runs
--include guard
--include now_ms
--include journal
--include head_parse
--include run_create
--include partition_of
--include variadic
--include signal_due
--include check_types
--include overlap_of
--include run_reschedule
--include run_parse
--include fetch_all
--include restore_in_progress
--include in_recovery_grace
--include late_due
--include codes
--include event_catchup
--include event_catchup_done
--include event_skip
--include key
--include optional_parse
--include range_parse
--include text
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'staged'}, {'runs', 'paces'})
local now = now_ms()
local at = text(now)
local count = #ARGV - group_at + 1
local score = redis.call('ZSCORE', key('catchup'), a_member)
if not score or text(tonumber(score)) ~= a_score then return {'stale', at} end
local range = range_parse(a_member)
local job, schedule_version = range and range.job, range and range.schedule_version
local head = job and head_parse(redis.call('HGET', key('jobs', partition_of(job), 0), job))
-- A range outlasts a change of the schedule that was no edit of it: new zone data, a holiday calendar, the window.
local keeps = head and optional_parse(head).keeps or ''
local current = head and text(head.schedule_version) == schedule_version
local stands = current or (keeps ~= '' and tonumber(schedule_version) >= tonumber(keeps))
if job and not head and restore_in_progress() then
  redis.call('ZADD', key('catchup'), text(now + a_pace_ms), a_member)
  return {'paced', at}
end
if not head or head.state ~= JOB_STATE.ACTIVE or not stands then
  if range then
    local reason, events = 'withdrawn by an edit', {}
    if not head or head.state == JOB_STATE.DELETED then reason = 'deleted'
    elseif head.state == JOB_STATE.PAUSED then reason = 'paused'
    elseif head.state == JOB_STATE.INVALID and current then reason = 'invalid' end
    event_skip(events, job, range.from, range.to, text(math.max(a_left, 1)), reason, at)
    event_catchup_done(events, range, at)
    journal('journal', marker.generation, events)
  end
  redis.call('ZREM', key('catchup'), a_member)
  return {'gone', at}
end
local since, used = string.match(redis.call('HGET', key('paces'), job) or '', '^(%d+)|(%d+)$')
since, used = tonumber(since or '0'), tonumber(used or '0')
if now - since >= a_pace_ms then since, used = now, 0 end
if used + count > a_most then return {'paced', at} end
local out, runs = {events = {}, records = {}, staged = {}}, {}
for i = group_at, #ARGV do runs[#runs + 1] = job .. ':' .. ARGV[i] end
-- Late runs of a job whose runs must not overlap wait for one another, whatever becomes of those that are on time.
local overlap = overlap_of(head) ~= '' and OVERLAP.QUEUE_ALL or ''
local closed = in_recovery_grace(marker, now) and marker.closed_at
local values = fetch_all(key('runs'), runs)
for i = 1, #runs do
  local last = a_rest == '' and i == #runs and string.match(range.flags, FLAG.LAST) or ''
  local old = run_parse(values[i])
  if not old then run_create(out, runs[i], head, late_due(closed, ARGV[group_at + i - 1], now), at, last, overlap)
  else run_reschedule(out, runs[i], old, head, at, last) end
end
if a_rest ~= '' then event_catchup(out.events, range_parse(a_rest), at) else event_catchup_done(out.events, range, at) end
journal('journal', marker.generation, out.events)
variadic('HSET', key('runs'), out.records, 2)
variadic('ZADD', key('staged'), out.staged, 2)
redis.call('ZREM', key('catchup'), a_member)
if a_rest ~= '' then redis.call('ZADD', key('catchup'), text(now + a_pace_ms), a_rest) end
redis.call('HSET', key('paces'), job, text(since) .. '|' .. text(used + count))
redis.call('PEXPIRE', key('paces'), 60000 + a_pace_ms)
signal_due(at)
return {'ok', at, text(#out.staged / 2)}
