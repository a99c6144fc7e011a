-- Collects the event of a run that has moved. `packed`: its record; at: the instant (ms) as text, with `,` and the instant
-- at which the attempt was due where the record is already that of the next one; detail: error or reason, '' for none.
--include codes
local function event_run(events, run, packed, at, detail)
  events[#events + 1] = EVENT.RUN
  events[#events + 1] = run .. '\n' .. packed .. '\n' .. at .. '\n' .. detail
end
