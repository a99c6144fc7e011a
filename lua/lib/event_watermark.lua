-- Collects the event that all occurrences of a partition before `ms` (text) have been claimed.
--include codes
local function event_watermark(events, partition, ms)
  events[#events + 1] = EVENT.WATERMARK
  events[#events + 1] = partition .. '\n' .. ms
end
