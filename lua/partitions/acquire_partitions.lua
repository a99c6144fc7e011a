-- Renews a scheduler's own lease, takes partitions that are free or whose owner is gone, and gives up others.
-- A new owner bumps the partition's epoch, so that a claim under the old one is refused.
-- MOVES
-- KEYS    shard schedulers owners
-- ARGV    generation:text scheduler:text lease_ms:int items:[partition:int take:int]
--         lease_ms 0: leave at once. take 1: take it, 0: give it up.
-- REPLY   ok now live:[scheduler]... taken:[partition epoch]... next_end | closed | stale_generation generation
-- COST    4 calls, 2 more for each partition that changes hands
-- FLAGS   allow-oom
--include guard
--include now_ms
--include key
--include text
--include fetch_all
--include variadic
--include check_types
local refusal = guard(a_generation)
if refusal then return refusal end
check_types({}, {'owners'})
local now = now_ms()
local wanted, given = {}, {}
for i = group_at, #ARGV, group_width do
  local list = ARGV[i + 1] == '1' and wanted or given
  list[#list + 1] = ARGV[i]
end
redis.call('ZREMRANGEBYSCORE', key('schedulers'), '-inf', text(now))
if a_lease_ms > 0 then
  redis.call('ZADD', key('schedulers'), text(now + a_lease_ms), a_scheduler)
else
  redis.call('ZREM', key('schedulers'), a_scheduler)
end
local ends = redis.call('ZRANGE', key('schedulers'), 0, -1, 'WITHSCORES')
local live, alive, next_end = {}, {}, ''
for i = 1, #ends, 2 do
  live[#live + 1] = ends[i]
  alive[ends[i]] = true
  if next_end == '' and ends[i] ~= a_scheduler then next_end = ends[i + 1] end
end
local writes, taken = {}, {}
local owners = fetch_all(key('owners'), wanted)
for i = 1, #wanted do
  local owner, epoch = string.match(owners[i] or '', '^(.*)|(%d+)$')
  if owner == a_scheduler then
    taken[#taken + 1] = wanted[i]
    taken[#taken + 1] = epoch
  elseif not owner or not alive[owner] then
    epoch = text(tonumber(epoch or '0') + 1)
    writes[#writes + 1] = wanted[i]
    writes[#writes + 1] = a_scheduler .. '|' .. epoch
    taken[#taken + 1] = wanted[i]
    taken[#taken + 1] = epoch
  end
end
owners = fetch_all(key('owners'), given)
for i = 1, #given do
  local owner, epoch = string.match(owners[i] or '', '^(.*)|(%d+)$')
  if owner == a_scheduler then
    writes[#writes + 1] = given[i]
    writes[#writes + 1] = '|' .. epoch
  end
end
variadic('HSET', key('owners'), writes, 2)
return {'ok', text(now), live, taken, next_end}
