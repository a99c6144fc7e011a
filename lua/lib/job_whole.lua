-- The whole value of a job from what its jobs hash holds: the body may lie apart.
--include key
local function job_whole(partition, job, value)
  if value and string.sub(value, -1) == '\n' then
    return value .. (redis.call('HGET', key('body', partition), job) or '')
  end
  return value
end
