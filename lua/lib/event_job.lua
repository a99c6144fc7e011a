-- Collects the event of a job that was written. `value`: its whole value.
--include codes
local function event_job(events, job, value)
  events[#events + 1] = EVENT.JOB
  events[#events + 1] = job .. '\n' .. value
end
