-- (queue, team, priority) of a lane.
local function split_lane(lane)
  return string.match(lane, '^([^:]+):([^:]+):([^:]+)$')
end
