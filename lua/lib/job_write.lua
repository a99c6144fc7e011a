-- Stores a job's whole value; a body over 1 KB goes to a hash of its own, so that claim never carries it.
--include key
local function job_write(partition, job, value)
  local at = string.find(value, '\n', 1, true)
  if #value - at > 1024 then
    redis.call('HSET', key('body', partition), job, string.sub(value, at + 1))
    redis.call('HSET', key('jobs', partition, 0), job, string.sub(value, 1, at))
  else
    redis.call('HSET', key('jobs', partition, 0), job, value)
    redis.call('HDEL', key('body', partition), job)
  end
end
