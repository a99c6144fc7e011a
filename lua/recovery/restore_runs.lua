-- Writes back run records that the ledger has in a later revision than Redis, with the payloads that are their own; one that
-- is RUNNING gets a fresh lease.
-- MOVES
-- KEYS    shard active payloads runs staged retries leases
-- ARGV    generation:text lease_ms:int items:[run:text record:text payload:text]
-- REPLY   ok now count | closed
-- COST    4 calls a run
--include key
--include text
--include recovery_guard
--include now_ms
--include run_parse
--include check_types
--include staged_member
--include codes
--include job_of
--include overlap_letter
--include retry_member
local refusal = recovery_guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'retries', 'leases'}, {'runs', 'payloads'})
local now = now_ms()
local count = 0
for i = group_at, #ARGV, group_width do
  local run, record, payload = ARGV[i], run_parse(ARGV[i + 1]), ARGV[i + 2]
  local old = run_parse(redis.call('HGET', key('runs'), run))
  local newer = record and (not old or tonumber(record.fence) > tonumber(old.fence)
    or (tonumber(record.fence) == tonumber(old.fence) and record.revision > old.revision))
  if newer then
    local waits, queued = retry_member(run, record.queue_key), staged_member(run, record.queue_key, record.flags)
    local active = overlap_letter(record.flags) and key('active', job_of(run))
    count = count + 1
    redis.call('ZREM', key('staged'), queued)
    redis.call('ZREM', key('retries'), waits)
    if active then redis.call('ZREM', active, run) end
    redis.call('ZREM', key('leases'), run)
    if record.state == STATE.QUEUED or record.state == STATE.RETRYING or record.state == STATE.RUNNING then
      redis.call('HSET', key('runs'), run, ARGV[i + 1])
      if record.state == STATE.RUNNING then redis.call('ZADD', key('leases'), text(now + a_lease_ms), run)
      elseif record.state == STATE.QUEUED then redis.call('ZADD', key('staged'), record.due_at, queued)
      else redis.call('ZADD', key('retries'), record.due_at, waits) end
      if active and record.state ~= STATE.QUEUED then redis.call('ZADD', active, '0', run) end
      if payload ~= '' then redis.call('HSET', key('payloads'), run, payload) end
    else
      redis.call('HDEL', key('runs'), run)
      redis.call('HDEL', key('payloads'), run)
    end
  end
end
return {'ok', text(now), text(count)}
