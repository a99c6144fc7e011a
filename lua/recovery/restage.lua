-- Brings every run that waits back to staged or retries and drops its queue stream, one page of runs a call: a stream
-- may have lost entries, the records have not.
-- MOVES
-- KEYS    shard active runs staged retries leases q ready quarantine
-- ARGV    generation:text cursor:text count:int lease_ms:int
-- REPLY   ok now cursor staged | closed
-- COST    4 calls a run
--include key
--include text
--include recovery_guard
--include now_ms
--include run_parse
--include split_queue_key
--include check_types
--include staged_member
--include codes
--include job_of
--include overlap_letter
--include retry_member
local refusal = recovery_guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'retries', 'leases'}, {'quarantine'})
local now = now_ms()
local page = redis.call('HSCAN', key('runs'), a_cursor, 'COUNT', a_count)
local count = 0
for i = 1, #page[2], 2 do
  local run, record = page[2][i], run_parse(page[2][i + 1])
  if not record or not split_queue_key(record.queue_key) then
    redis.call('HSET', key('quarantine'), run, page[2][i + 1])
    redis.call('HDEL', key('runs'), run)
    redis.call('ZREM', key('active', job_of(run)), run)
  elseif record.state == STATE.RUNNING then
    if overlap_letter(record.flags) then redis.call('ZADD', key('active', job_of(run)), '0', run) end
    if not redis.call('ZSCORE', key('leases'), run) then
      redis.call('ZADD', key('leases'), text(now + a_lease_ms), run)
    end
  else
    local queue = split_queue_key(record.queue_key)
    redis.call('DEL', key('q', record.queue_key))
    redis.call('DEL', key('ready', queue))
    local set, member = key('retries'), retry_member(run, record.queue_key)
    if record.state == STATE.QUEUED then
      -- Judged again at its release, where the job's runs must not overlap.
      set, member = key('staged'), staged_member(run, record.queue_key, record.flags)
    elseif overlap_letter(record.flags) then
      redis.call('ZADD', key('active', job_of(run)), '0', run)
    end
    if not redis.call('ZSCORE', set, member) then
      redis.call('ZADD', set, record.due_at, member)
      count = count + 1
    end
  end
end
return {'ok', text(now), page[1], text(count)}
