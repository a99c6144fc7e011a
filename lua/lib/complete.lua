-- The job values that completing these jobs would write, with their events: those that are still active under the
-- schedule version whose last run ended. Reads only. `last`: list of {job, schedule_version}.
--include codes
--include key
--include partition_of
--include check_job_types
--include job_whole
--include head_parse
--include head_pack
--include event_job
local function complete(last, events)
  local completed = {}
  for i = 1, #last do
    local job, schedule_version = last[i][1], last[i][2]
    local partition = partition_of(job)
    check_job_types(partition)
    local head = head_parse(redis.call('HGET', key('jobs', partition, 0), job))
    if head and head.state == JOB_STATE.ACTIVE and head.schedule_version == schedule_version then
      head.state = JOB_STATE.COMPLETED
      local value = head_pack(head)
      completed[#completed + 1] = {partition, job, value}
      event_job(events, job, job_whole(partition, job, value))
    end
  end
  return completed
end
