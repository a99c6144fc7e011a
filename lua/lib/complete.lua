-- The job values that completing these jobs would write, with their events: those that are still active under the
-- schedule version whose last run ended. Reads only. `last`: list of {job, schedule_version}.
--include key
--include partition_of
--include check_job_types
--include job_whole
--include head_parse
--include head_pack
local function complete(last, events)
  local out = {}
  for i = 1, #last do
    local job, schedule_version = last[i][1], last[i][2]
    local p = partition_of(job)
    check_job_types(p)
    local head = head_parse(redis.call('HGET', key('jobs', p, 0), job))
    if head and head.state == 'a' and head.schedule_version == schedule_version then
      head.state = 'c'
      local value = head_pack(head)
      out[#out + 1] = {p, job, value}
      events[#events + 1] = 'j'
      events[#events + 1] = job .. '\n' .. job_whole(p, job, value)
    end
  end
  return out
end
