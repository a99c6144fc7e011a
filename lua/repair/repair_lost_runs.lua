-- Writes back runs that are unfinished by the ledger and that Redis has not, or cannot read; one that is RUNNING gets a lease
-- of full length, so that reap decides. Each only if Redis still has what the caller saw.
-- MOVES
-- KEYS    shard runs payloads staged retries leases active signals
-- ARGV    generation:text lease_ms:int items:[run:text seen:text record:text payload:text]
--         seen: '' for none.
-- REPLY   ok now runs:[run]... | closed | stale_generation generation
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
check_types({'staged', 'retries', 'leases'}, {'runs', 'payloads'})
local now = now_ms()
local back = {}
for i = group_at, #ARGV, group_width do
  local record = run_parse(ARGV[i + 2])
  if record and overlap_letter(record.flags) then redis.call('ZCARD', key('active', job_of(ARGV[i]))) end
end
for i = group_at, #ARGV, group_width do
  local run, seen, packed, payload = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local record = run_parse(packed)
  if record and (redis.call('HGET', key('runs'), run) or '') == seen then
    back[#back + 1] = run
    redis.call('HSET', key('runs'), run, packed)
    local active = overlap_letter(record.flags) and key('active', job_of(run))
    if record.state == STATE.RUNNING then redis.call('ZADD', key('leases'), 'NX', text(now + a_lease_ms), run)
    elseif record.state == STATE.RETRYING then
      redis.call('ZADD', key('retries'), 'NX', record.due_at, retry_member(run, record.queue_key))
    else redis.call('ZADD', key('staged'), 'NX', record.due_at, staged_member(run, record.queue_key, record.flags)) end
    if active and record.state ~= STATE.QUEUED then redis.call('ZADD', active, '0', run) end
    if payload ~= '' then redis.call('HSET', key('payloads'), run, payload) end
  end
end
if #back > 0 then signal_due(text(now)) end
return {'ok', text(now), back}
