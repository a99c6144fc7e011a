-- The job values that completing these jobs would write, with their events: those that are still active under the
-- schedule version whose last run ended. Reads only. `last`: list of {job, sv}.
--include partition_of
--include job_read
--include head_pack
local function complete(last, events)
  local out = {}
  for i = 1, #last do
    local job, sv = last[i][1], last[i][2]
    local p = partition_of(job)
    local head = job_read(p, job)
    if head and head.state == 'a' and head.sv == sv then
      head.state = 'c'
      local value = head_pack(head)
      out[#out + 1] = {p, job, value}
      events[#events + 1] = 'j'
      events[#events + 1] = job .. '\n' .. value
    end
  end
  return out
end
