-- Appends runs to the queue streams of their lanes and marks their teams ready. `lanes`: lane -> list of runs.
-- A team that joins starts at the larger of the queue's virtual time and its own, so that idling earns no credit.
--include key
--include split_lane
--include text
local function enqueue(lanes)
  local woken = {}
  for lane, runs in pairs(lanes) do
    local queue, team = split_lane(lane)
    local stream = key('q', lane)
    if redis.call('EXISTS', stream) == 0 then
      redis.call('XGROUP', 'CREATE', stream, 'workers', '0', 'MKSTREAM')
    end
    for i = 1, #runs do redis.call('XADD', stream, '*', 'r', runs[i]) end
    local ready = key('ready', queue)
    if not redis.call('ZSCORE', ready, team) then
      local v = redis.call('ZMSCORE', key('virtual', queue), '', team)
      local start = math.max(tonumber(v[1] or '0'), tonumber(v[2] or '0'))
      redis.call('ZADD', ready, text(start), team)
    end
    woken[queue] = true
  end
  for queue in pairs(woken) do redis.call('PUBLISH', key('signals'), 'work ' .. queue) end
end
