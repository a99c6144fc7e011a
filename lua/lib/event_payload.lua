-- Collects the event of a run that has a payload of its own.
--include codes
local function event_payload(events, run, payload)
  events[#events + 1] = EVENT.PAYLOAD
  events[#events + 1] = run .. '\n' .. payload
end
