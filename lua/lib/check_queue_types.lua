-- Raises before anything is written if a key that `enqueue` of these queue_keys needs is of another type.
--include key
--include split_queue_key
local function check_queue_types(queue_keys)
  for queue_key in pairs(queue_keys) do
    local queue = split_queue_key(queue_key)
    redis.call('XLEN', key('q', queue_key))
    redis.call('ZCARD', key('ready', queue))
    redis.call('ZCARD', key('virtual', queue))
  end
end
