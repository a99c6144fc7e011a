-- Collects the event of a catch-up range that was made or has moved on; from past `to`: nothing of it is left.
--include codes
local function event_catchup(events, range, at)
  events[#events + 1] = EVENT.RANGE
  events[#events + 1] = table.concat(
    {range.job, range.made_at, range.to, range.from, range.schedule_version, range.flags, at}, '\n')
end
