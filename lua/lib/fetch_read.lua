-- Reads the ready teams of a queue in the order of their virtual times, at most `most`, as `fair_shares` takes them: their
-- streams' lengths by priority. Raises before anything is written if the queue's virtual times are of another type.
--include key
local function fetch_read(queue, most)
  redis.call('ZCARD', key('virtual', queue))
  local teams = {}
  if not most then return teams end
  local ready = redis.call('ZRANGE', key('ready', queue), 0, most - 1, 'WITHSCORES')
  for i = 1, #ready, 2 do
    local sizes, total = {}, 0
    for priority = 0, 2 do
      sizes[priority] = redis.call('XLEN', key('q', queue .. ':' .. ready[i] .. ':' .. priority))
      total = total + sizes[priority]
    end
    teams[#teams + 1] = {team = ready[i], time = tonumber(ready[i + 1]), sizes = sizes, total = total,
      taken = {[0] = 0, 0, 0}, given = 0}
  end
  return teams
end
