-- Gives a worker again what it was given under this request number, as far as it still runs, each with a fresh lease; nil
-- where its last request was another.
--include codes
--include key
--include run_parse
--include partition_of
--include job_of
--include job_whole
--include fetch_reply
local function fetch_repeat(worker, request, lease_end)
  local before = redis.call('HGET', key('requests'), worker)
  if not before or string.match(before, '^(%S+)') ~= request then return nil end
  local replies = {}
  for run in string.gmatch(before, ' (%S+)') do
    local record = run_parse(redis.call('HGET', key('runs'), run))
    if record and record.state == STATE.RUNNING and record.worker == worker then
      local partition, job = partition_of(run), job_of(run)
      fetch_reply(replies, run, record, job_whole(partition, job, redis.call('HGET', key('jobs', partition, 0), job)))
      redis.call('ZADD', key('leases'), lease_end, run)
    end
  end
  return replies
end
