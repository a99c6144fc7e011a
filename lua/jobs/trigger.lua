-- Makes one manual run of a job now, beside its schedule; a repeat with the same idempotency hash gives the same run.
-- MOVES   none -> QUEUED
-- KEYS    shard jobs runs staged triggers payloads definitions signals
-- ARGV    generation:text job:text suffix:text repeat_key:text overlap:text payload:text
--         suffix: 4 characters that end the run id. repeat_key: '' for none. overlap: the letter of a policy instead of the
--         job's, 'a' to run beside others, '' for the job's own. payload: instead of the job's, '' for its own.
-- REPLY   ok now journal_id run | already now journal_id run | missing now | completed now | untracked now | closed |
--         stale_generation generation
--         untracked: an overlap policy was asked for, and the job's runs are not judged by one.
-- COST    8 calls
--include guard
--include now_ms
--include journal
--include head_parse
--include partition_of
--include signal_due
--include check_types
--include overlap_of
--include codes
--include event_payload
--include event_trigger
--include key
--include run_create
--include text
--include variadic
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'triggers'}, {'payloads'})
local now = now_ms()
local partition = partition_of(a_job)
local head = head_parse(redis.call('HGET', key('jobs', partition, 0), a_job))
if not head or head.state == JOB_STATE.DELETED then return {'missing', text(now)} end
if head.state == JOB_STATE.COMPLETED then return {'completed', text(now)} end
local member = a_job .. '|' .. a_repeat_key
local at = text(now)
if a_repeat_key ~= '' then
  local before = redis.call('ZSCORE', key('triggers'), member)
  if before then
    local last = redis.call('XREVRANGE', key('definitions'), '+', '-', 'COUNT', 1)
    return {'already', at, last[1] and last[1][1] or '', a_job .. ':m-' .. text(tonumber(before)) .. '-' .. a_suffix}
  end
end
local run = a_job .. ':m-' .. at .. '-' .. a_suffix
if redis.call('HEXISTS', key('runs'), run) == 1 then
  return {'already', at, '', run}
end
local own = overlap_of(head)
if a_overlap ~= '' and a_overlap ~= OVERLAP.ANYWAY and own == '' then return {'untracked', at} end
local letter = (own == '' or a_overlap == '') and own or a_overlap
local out = {events = {}, records = {}, staged = {}}
run_create(out, run, head, at, at, FLAG.MANUAL .. (a_payload ~= '' and FLAG.PAYLOAD or ''), letter)
if a_payload ~= '' then event_payload(out.events, run, a_payload) end
if a_repeat_key ~= '' then event_trigger(out.events, a_job, a_repeat_key, at) end
local id = journal('definitions', marker.generation, out.events)
if a_payload ~= '' then redis.call('HSET', key('payloads'), run, a_payload) end
variadic('HSET', key('runs'), out.records, 2)
variadic('ZADD', key('staged'), out.staged, 2)
if a_repeat_key ~= '' then
  redis.call('ZREMRANGEBYSCORE', key('triggers'), '-inf', text(now - TRIGGER.KEYED_FOR_MS))
  redis.call('ZADD', key('triggers'), at, member)
end
signal_due(at)
return {'ok', at, id, run}
