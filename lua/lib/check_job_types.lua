-- Raises before anything is written if a key that writing a job of this partition needs is of another type.
--include key
local function check_job_types(partition)
  redis.call('ZCARD', key('due', partition, 0))
  redis.call('HLEN', key('body', partition))
end
