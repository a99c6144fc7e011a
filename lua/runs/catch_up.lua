-- Pays out the next occurrences of a catch-up range as runs; the range moves on in the same step. Of a job that was
-- paused, rescheduled or deleted since, the rest is skipped on record.
-- MOVES   none -> QUEUED, QUEUED -> QUEUED
-- KEYS    shard unconfirmed paces catchup jobs runs staged journal signals restore
-- ARGV    generation:text member:text score:text rest:text pace_ms:int most:int left:int items:[at:text]
--         rest: the range that is left, '' when it is paid out. score: as the caller saw it. left: how many occurrences the range
--         still has, for the record if they are skipped; 0 where nobody can count them. most: what the job may get in
--         pace_ms, of all its ranges.
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
--include catchup_event
--include overlap_of
--include run_reschedule
--include run_parse
--include fetch_all
--include restore_in_progress
--include in_recovery_grace
--include late_due
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'staged'}, {'runs', 'paces'})
local now = now_ms()
local at = text(now)
local owed = #ARGV - group_at + 1
local score = redis.call('ZSCORE', key('catchup'), a_member)
if not score or text(tonumber(score)) ~= a_score then return {'stale', at} end
local job, from, to, schedule_version, flags, made = string.match(a_member, '^([^|]+)|(%d+)|(%d+)|(%d+)|(%a*)|(%d+)$')
local head = job and head_parse(redis.call('HGET', key('jobs', partition_of(job), 0), job))
-- A range outlasts a change of the schedule that was no edit of it: new zone data, a calendar, the window.
local keeps = head and extras(head)[7] or ''
local stands = head and (text(head.schedule_version) == schedule_version or (keeps ~= '' and tonumber(schedule_version) >= tonumber(keeps)))
if job and not head and restore_in_progress() then
  redis.call('ZADD', key('catchup'), text(now + a_pace_ms), a_member)
  return {'paced', at}
end
if not head or head.state ~= 'a' or not stands then
  local reasons = {p = 'paused', d = 'deleted', i = text(head and head.schedule_version or 0) == schedule_version and 'invalid' or nil}
  local reason = reasons[head and head.state or 'd'] or 'withdrawn by an edit'
  if job then
    local gone = {'k', table.concat({job, from, to, text(math.max(a_left, 1)), reason, at}, '\n')}
    catchup_event(gone, table.concat({job, text(tonumber(to) + 1), to, schedule_version, flags, made}, '|'), at)
    journal('journal', marker.generation, gone)
  end
  redis.call('ZREM', key('catchup'), a_member)
  return {'gone', at}
end
local since, used = string.match(redis.call('HGET', key('paces'), job) or '', '^(%d+)|(%d+)$')
since, used = tonumber(since or '0'), tonumber(used or '0')
if now - since >= a_pace_ms then since, used = now, 0 end
if used + owed > a_most then return {'paced', at} end
local out, runs = {events = {}, records = {}, staged = {}}, {}
for i = group_at, #ARGV do runs[#runs + 1] = job .. ':' .. ARGV[i] end
-- Late runs of a job whose runs must not overlap wait for one another, whatever becomes of those that are on time.
local overlap = overlap_of(head) ~= '' and 'w' or ''
local closed = in_recovery_grace(marker, now) and marker.closed_at
local values = fetch_all(key('runs'), runs)
for i = 1, #runs do
  local last = a_rest == '' and i == #runs and string.match(flags, 'L') or ''
  local old = run_parse(values[i])
  if not old then run_create(out, runs[i], head, late_due(closed, ARGV[group_at + i - 1], now), at, last, overlap)
  else run_reschedule(out, runs[i], old, head, at, last) end
end
catchup_event(out.events, a_rest ~= '' and a_rest or table.concat({job, text(tonumber(to) + 1), to, schedule_version, flags, made}, '|'), at)
journal('journal', marker.generation, out.events)
variadic('HSET', key('runs'), out.records, 2)
variadic('ZADD', key('staged'), out.staged, 2)
redis.call('ZREM', key('catchup'), a_member)
if a_rest ~= '' then redis.call('ZADD', key('catchup'), text(now + a_pace_ms), a_rest) end
redis.call('HSET', key('paces'), job, text(since) .. '|' .. text(used + owed))
redis.call('PEXPIRE', key('paces'), 60000 + a_pace_ms)
signal_due(at)
return {'ok', at, text(#out.staged / 2)}
