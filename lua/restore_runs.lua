-- Writes back run records that the ledger has in a later revision than Redis; one that is RUNNING gets a fresh lease.
-- MOVES
-- KEYS    shard runs staged retries leases
-- ARGV    generation:text lease_ms:int items:[run:text record:text]
-- REPLY   ok now count | closed
-- COST    4 calls a run
--include key
--include text
--include recovering
--include now_ms
--include run_parse
--include typed
local refusal = recovering(a_generation)
if refusal then return refusal end
typed({'staged', 'retries', 'leases'}, {'runs'})
local now = now_ms()
local count = 0
for i = group_at, #ARGV, group_width do
  local run, r = ARGV[i], run_parse(ARGV[i + 1])
  local old = run_parse(redis.call('HGET', key('runs'), run))
  local newer = r and (not old or tonumber(r.fence) > tonumber(old.fence)
    or (tonumber(r.fence) == tonumber(old.fence) and r.rev > old.rev))
  if newer then
    local member = run .. '|' .. r.lane
    count = count + 1
    redis.call('ZREM', key('staged'), member)
    redis.call('ZREM', key('retries'), member)
    redis.call('ZREM', key('leases'), run)
    if r.state == 'Q' or r.state == 'T' or r.state == 'R' then
      redis.call('HSET', key('runs'), run, ARGV[i + 1])
      if r.state == 'R' then redis.call('ZADD', key('leases'), text(now + a_lease_ms), run)
      else redis.call('ZADD', key(r.state == 'Q' and 'staged' or 'retries'), r.due, member) end
    else
      redis.call('HDEL', key('runs'), run)
    end
  end
end
return {'ok', text(now), text(count)}
