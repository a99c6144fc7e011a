-- Makes `heads` tell the partition's earliest due; gives that instant or nil.
--include key
local function head_update(partition)
  local first = redis.call('ZRANGE', key('due', partition, 0), 0, 0, 'WITHSCORES')
  if first[2] then
    redis.call('ZADD', key('heads'), first[2], partition)
    return first[2]
  end
  redis.call('ZREM', key('heads'), partition)
  return nil
end
