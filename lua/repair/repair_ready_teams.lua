-- Takes the teams that have no work out of a page of a queue's ready set.
-- MOVES
-- KEYS    shard ready q
-- ARGV    generation:text queue:text cursor:text count:int write:int
--         write 0: only finds.
-- REPLY   ok now cursor found:[kind team]... | closed | stale_generation generation
-- COST    3 calls a team
--include guard
--include now_ms
--include key
--include text
--include variadic
local refusal = guard(a_generation)
if refusal then return refusal end
local ready = key('ready', a_queue)
local page = redis.call('ZSCAN', ready, a_cursor, 'COUNT', a_count)
local found, gone = {}, {}
for i = 1, #page[2], 2 do
  local team, work = page[2][i], 0
  for priority = 0, 2 do work = work + redis.call('XLEN', key('q', a_queue .. ':' .. team .. ':' .. priority)) end
  if work == 0 then
    found[#found + 1] = 'team_without_work'
    found[#found + 1] = team
    gone[#gone + 1] = team
  end
end
if a_write == 1 then variadic('ZREM', ready, gone, 1) end
return {'ok', text(now_ms()), page[1], found}
