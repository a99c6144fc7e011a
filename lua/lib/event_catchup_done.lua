-- Collects the event of a catch-up range of which nothing is left.
--include event_catchup
--include text
local function event_catchup_done(events, range, at)
  range.from = text(tonumber(range.to) + 1)
  event_catchup(events, range, at)
end
