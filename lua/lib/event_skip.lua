-- Collects the event of `total` occurrences from `first` to `last` that make no run, for `reason`. All but job and reason
-- are integers as text.
--include codes
local function event_skip(events, job, first, last, total, reason, at)
  events[#events + 1] = EVENT.SKIP
  events[#events + 1] = table.concat({job, first, last, total, reason, at}, '\n')
end
