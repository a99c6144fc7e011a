-- Collects the event of an entry that could not be read and is quarantined. `kind`: where it was; raw: what it held.
--include codes
local function event_quarantine(events, kind, entry, raw, at)
  events[#events + 1] = EVENT.QUARANTINE
  events[#events + 1] = kind .. '\n' .. string.gsub(entry, '\n', ' ') .. '\n' .. at .. '\n' .. raw
end
