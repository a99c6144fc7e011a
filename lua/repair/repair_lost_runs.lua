-- Writes back runs that the ledger has open and Redis has not, or cannot read; one that is RUNNING gets a lease of full
-- length, so that reap decides. Each only if Redis still has what the caller saw.
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
local refusal = guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'retries', 'leases'}, {'runs', 'payloads'})
local now = now_ms()
local back = {}
for i = group_at, #ARGV, group_width do
  local r = run_parse(ARGV[i + 2])
  if r and string.find(r.flags, '%l') then redis.call('ZCARD', key('active', string.sub(ARGV[i], 1, 15))) end
end
for i = group_at, #ARGV, group_width do
  local run, seen, record, payload = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local r = run_parse(record)
  if r and (redis.call('HGET', key('runs'), run) or '') == seen then
    back[#back + 1] = run
    redis.call('HSET', key('runs'), run, record)
    local open = string.find(r.flags, '%l') and key('active', string.sub(run, 1, 15))
    if r.state == 'R' then redis.call('ZADD', key('leases'), 'NX', text(now + a_lease_ms), run)
    elseif r.state == 'T' then redis.call('ZADD', key('retries'), 'NX', r.due, run .. '|' .. r.queue_key)
    else redis.call('ZADD', key('staged'), 'NX', r.due, staged_member(run, r.queue_key, r.flags)) end
    if open and r.state ~= 'Q' then redis.call('ZADD', open, '0', run) end
    if payload ~= '' then redis.call('HSET', key('payloads'), run, payload) end
  end
end
if #back > 0 then signal_due(text(now)) end
return {'ok', text(now), back}
