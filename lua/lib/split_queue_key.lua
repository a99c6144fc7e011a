-- (queue, team, priority) of a queue_key.
local function split_queue_key(queue_key)
  return string.match(queue_key, '^([^:]+):([^:]+):([^:]+)$')
end
