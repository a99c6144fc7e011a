-- (head, whole value) of a job; nil where there is none.
--include key
--include head_parse
--include job_whole
local function job_read(partition, job)
  local value = redis.call('HGET', key('jobs', partition, 0), job)
  local whole = job_whole(partition, job, value)
  return head_parse(whole), whole
end
