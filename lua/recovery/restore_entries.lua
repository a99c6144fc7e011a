-- Writes back what the ledger has beside jobs and runs: calendars of exclusions in a later version, catch-up ranges as far as
-- they were paid out, keyed triggers that are not there. A range that was paid out to its end is dropped.
-- MOVES
-- KEYS    shard calendars catchup triggers
-- ARGV    generation:text kind:text items:[name:text value:text]
--         kind exclusions: (team/name, version newline body). kind catchup: (member, ''); from past `to`: nothing is left of it.
--         kind triggers: (member, ms of the run); of these the shard may be open.
-- REPLY   ok now count | closed
-- COST    2 calls an item; of triggers 1 call for all
--include key
--include text
--include recovery_guard
--include now_ms
--include check_types
local refusal = recovery_guard(a_generation, a_kind == 'triggers')
if refusal then return refusal end
check_types({'catchup', 'triggers'}, {'calendars'})
local now = text(now_ms())
local count = 0
if a_kind == 'calendars' then
  for i = group_at, #ARGV, group_width do
    local there = string.match(redis.call('HGET', key('calendars'), ARGV[i]) or '', '^(%d+)\n')
    if tonumber(there or '0') < tonumber(string.match(ARGV[i + 1], '^(%d+)')) then
      redis.call('HSET', key('calendars'), ARGV[i], ARGV[i + 1])
      count = count + 1
    end
  end
  return {'ok', now, text(count)}
end
if a_kind == 'triggers' then
  local list = {}
  for i = group_at, #ARGV, group_width do
    list[#list + 1] = ARGV[i + 1]
    list[#list + 1] = ARGV[i]
  end
  if #list > 0 then count = redis.call('ZADD', key('triggers'), 'NX', unpack(list)) end
  return {'ok', now, text(count)}
end
local function identity(member)
  local job, from, rest, to = string.match(member, '^([^|]+)|(%d+)(|(%d+)|.*)$')
  return job and job .. rest, tonumber(from), tonumber(to)
end
local there = {}
local members = redis.call('ZRANGE', key('catchup'), 0, -1)
for i = 1, #members do
  local id, from = identity(members[i])
  if id then there[id] = {members[i], from} end
end
for i = group_at, #ARGV, group_width do
  local id, from, to = identity(ARGV[i])
  local old = there[id]
  local left = from <= to
  if left and not old or old and old[2] < from then
    if old then redis.call('ZREM', key('catchup'), old[1]) end
    if left then redis.call('ZADD', key('catchup'), now, ARGV[i]) end
    count = count + 1
  end
end
return {'ok', now, text(count)}
