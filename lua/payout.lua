-- Pays out the next occurrences of a catch-up range as runs; the range moves on in the same step. Of a job that was
-- paused, rescheduled or deleted since, the rest is skipped on record, its count a lower bound.
-- MOVES   none -> QUEUED
-- KEYS    shard catchup jobs runs staged journal signals
-- ARGV    generation:text member:text score:text rest:text pace_ms:int items:[at:text]
--         rest: the range that is left, '' when it is paid out. score: as the caller saw it.
-- REPLY   ok now count | stale now | gone now | closed | reopened generation
-- COST    7 calls; variadic over the runs
--include guard
--include now_ms
--include journal
--include head_parse
--include run_put
--include partition_of
--include variadic
--include signal_due
--include typed
local refusal, marker = guard(a_generation)
if refusal then return refusal end
typed({'staged'}, {'runs'})
local now = now_ms()
local at = text(now)
local score = redis.call('ZSCORE', key('catchup'), a_member)
if not score or text(tonumber(score)) ~= a_score then return {'stale', at} end
local job, from, to, sv, last = string.match(a_member, '^([^|]+)|(%d+)|(%d+)|(%d+)|(%a*)$')
local head = job and head_parse(redis.call('HGET', key('jobs', partition_of(job), 0), job))
if not head or head.state ~= 'a' or text(head.sv) ~= sv then
  local reason = (not head or head.state == 'd') and 'deleted' or head.state == 'p' and 'paused' or 'withdrawn by an edit'
  if job then
    journal('journal', marker.generation, {'k', table.concat({job, from, to, '1', reason, at}, '\n')})
  end
  redis.call('ZREM', key('catchup'), a_member)
  return {'gone', at}
end
local out, runs = {events = {}, records = {}, staged = {}}, {}
for i = group_at, #ARGV do runs[#runs + 1] = job .. ':' .. ARGV[i] end
for i = 1, #runs do
  if redis.call('HEXISTS', key('runs'), runs[i]) == 0 then
    run_put(out, runs[i], head, at, at, (a_rest == '' and i == #runs) and last or '')
  end
end
journal('journal', marker.generation, out.events)
variadic('HSET', key('runs'), out.records, 2)
variadic('ZADD', key('staged'), out.staged, 2)
redis.call('ZREM', key('catchup'), a_member)
if a_rest ~= '' then redis.call('ZADD', key('catchup'), text(now + a_pace_ms), a_rest) end
signal_due(at)
return {'ok', at, text(#out.staged / 2)}
