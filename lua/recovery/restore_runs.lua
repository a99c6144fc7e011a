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
local refusal = recovery_guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'retries', 'leases'}, {'runs', 'payloads'})
local now = now_ms()
local count = 0
for i = group_at, #ARGV, group_width do
  local run, r, payload = ARGV[i], run_parse(ARGV[i + 1]), ARGV[i + 2]
  local old = run_parse(redis.call('HGET', key('runs'), run))
  local newer = r and (not old or tonumber(r.fence) > tonumber(old.fence)
    or (tonumber(r.fence) == tonumber(old.fence) and r.revision > old.revision))
  if newer then
    local waits, queued = run .. '|' .. r.queue_key, staged_member(run, r.queue_key, r.flags)
    local open = string.find(r.flags, '%l') and key('active', string.sub(run, 1, 15))
    count = count + 1
    redis.call('ZREM', key('staged'), queued)
    redis.call('ZREM', key('retries'), waits)
    if open then redis.call('ZREM', open, run) end
    redis.call('ZREM', key('leases'), run)
    if r.state == 'Q' or r.state == 'T' or r.state == 'R' then
      redis.call('HSET', key('runs'), run, ARGV[i + 1])
      if r.state == 'R' then redis.call('ZADD', key('leases'), text(now + a_lease_ms), run)
      elseif r.state == 'Q' then redis.call('ZADD', key('staged'), r.due, queued)
      else redis.call('ZADD', key('retries'), r.due, waits) end
      if open and r.state ~= 'Q' then redis.call('ZADD', open, '0', run) end
      if payload ~= '' then redis.call('HSET', key('payloads'), run, payload) end
    else
      redis.call('HDEL', key('runs'), run)
      redis.call('HDEL', key('payloads'), run)
    end
  end
end
return {'ok', text(now), text(count)}
