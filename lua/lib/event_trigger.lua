-- Collects the event of a trigger with an idempotency key, as a hash, that made the manual run of `at` (ms, text).
--include codes
local function event_trigger(events, job, hash, at)
  events[#events + 1] = EVENT.TRIGGER
  events[#events + 1] = job .. '\n' .. hash .. '\n' .. at
end
