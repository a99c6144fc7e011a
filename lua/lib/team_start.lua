-- The virtual time, as text, at which a team joins those that are ready in a queue.
--include key
--include text
local function team_start(queue, team)
  local of_queue, of_team = unpack(redis.call('ZMSCORE', key('virtual', queue), '', team), 1, 2)
  return text(math.max(tonumber(of_queue or '0'), tonumber(of_team or '0')))
end
