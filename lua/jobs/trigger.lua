-- Owes one manual run of a job now, beside its schedule; a repeat with the same idempotency hash gives the same run.
-- MOVES   none -> QUEUED
-- KEYS    shard jobs runs staged triggers payloads definitions signals
-- ARGV    generation:text job:text suffix:text repeat_key:text overlap:text payload:text
--         suffix: 4 characters that end the run id. repeat_key: '' for none. overlap: the letter of a policy instead of the
--         job's, 'a' to run beside others, '' for the job's own. payload: instead of the job's, '' for its own.
-- REPLY   ok now journal_id run | already now journal_id run | missing now | completed now | untracked now | closed | stale_generation generation
--         untracked: an overlap policy was asked for, and the job's runs are not judged by one.
-- COST    8 calls
--include guard
--include now_ms
--include journal
--include head_parse
--include partition_of
--include run_pack
--include run_first_revision
--include signal_due
--include check_types
--include staged_member
--include overlap_of
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'triggers'}, {'payloads'})
local now = now_ms()
local p = partition_of(a_job)
local head = head_parse(redis.call('HGET', key('jobs', p, 0), a_job))
if not head or head.state == 'd' then return {'missing', text(now)} end
if head.state == 'c' then return {'completed', text(now)} end
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
if a_overlap ~= '' and a_overlap ~= 'a' and own == '' then return {'untracked', at} end
local letter = (own == '' or a_overlap == '') and own or a_overlap
local flags = 'M' .. (a_payload ~= '' and 'P' or '') .. letter
local record = run_pack({state = 'Q', revision = run_first_revision(head.schedule_version), queue_key = head.queue_key, schedule_version = head.schedule_version, attempt = 0,
  fence = '0', worker = '', claimed = at, due = at, started = '0', flags = flags})
local events = {'r', run .. '\n' .. record .. '\n' .. at .. '\n'}
if a_payload ~= '' then
  events[3] = 'o'
  events[4] = run .. '\n' .. a_payload
end
if a_repeat_key ~= '' then
  events[#events + 1] = 't'
  events[#events + 1] = a_job .. '\n' .. a_repeat_key .. '\n' .. at
end
local id = journal('definitions', marker.generation, events)
if a_payload ~= '' then redis.call('HSET', key('payloads'), run, a_payload) end
redis.call('HSET', key('runs'), run, record)
redis.call('ZADD', key('staged'), at, staged_member(run, head.queue_key, flags))
if a_repeat_key ~= '' then
  redis.call('ZREMRANGEBYSCORE', key('triggers'), '-inf', text(now - 86400000))
  redis.call('ZADD', key('triggers'), at, member)
end
signal_due(at)
return {'ok', at, id, run}
