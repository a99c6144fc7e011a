-- Appends runs to the queue streams of their queue keys and marks their teams ready. `queue_keys`: queue key -> list of runs.
-- A team that joins starts at the larger of the queue's virtual time and its own, so that idling earns no credit.
--include key
--include split_queue_key
--include team_start
local function enqueue(queue_keys)
  local woken = {}
  for queue_key, runs in pairs(queue_keys) do
    local queue, team = split_queue_key(queue_key)
    local stream = key('q', queue_key)
    if redis.call('EXISTS', stream) == 0 then
      redis.call('XGROUP', 'CREATE', stream, 'workers', '0', 'MKSTREAM')
    end
    for i = 1, #runs do redis.call('XADD', stream, '*', 'r', runs[i]) end
    local ready = key('ready', queue)
    if not redis.call('ZSCORE', ready, team) then redis.call('ZADD', ready, team_start(queue, team), team) end
    woken[queue] = true
  end
  for queue in pairs(woken) do redis.call('PUBLISH', key('signals'), 'work ' .. queue) end
end
