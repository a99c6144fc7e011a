-- Stages waiting runs again that the caller found in no queue stream, at their due time; of those that it found there and
-- whose job's runs must not overlap, the set of active runs learns. Each only if nothing about it has changed since it was seen.
-- MOVES
-- KEYS    shard runs staged retries active signals
-- ARGV    generation:text write:int items:[run:text record:text score:text queued:int]
--         score: among the active runs of its job as it was seen, '' for none. queued 1: the run is in its queue stream.
-- REPLY   ok now found:[kind run]... | closed | stale_generation generation
-- COST    5 calls a run
--include guard
--include now_ms
--include key
--include text
--include run_parse
--include staged_member
--include signal_due
--include check_types
--include codes
--include job_of
--include overlap_letter
--include retry_member
local refusal = guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'retries'}, {'runs'})
local now = now_ms()
local found, writes, earliest = {}, {}, nil
for i = group_at, #ARGV, group_width do
  local run, packed, score, queued = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local record = run_parse(redis.call('HGET', key('runs'), run) == packed and packed)
  local flagged = record and overlap_letter(record.flags)
  local active = key('active', job_of(run))
  local kind = nil
  if record and (not flagged or (redis.call('ZSCORE', active, run) or '') == score) then
    local set, member = 'staged', staged_member(run, record.queue_key, record.flags)
    if record.state == STATE.RETRYING then set, member = 'retries', retry_member(run, record.queue_key) end
    if not redis.call('ZSCORE', key(set), member) then
      if queued == '0' then
        kind = 'run_not_queued'
        writes[#writes + 1] = {key(set), record.due_at, member}
        if not earliest or tonumber(record.due_at) < earliest then earliest = tonumber(record.due_at) end
      elseif flagged and record.state == STATE.QUEUED and score == '' then
        kind = 'run_not_active'
        writes[#writes + 1] = {active, '0', run}
      end
    end
  end
  if kind then
    found[#found + 1] = kind
    found[#found + 1] = run
  end
end
if a_write == 1 then
  for i = 1, #writes do redis.call('ZADD', writes[i][1], writes[i][2], writes[i][3]) end
  if earliest then signal_due(text(earliest)) end
end
return {'ok', text(now), found}
