-- Collects the event of a version of a team's holiday calendar; body '': it was deleted.
--include codes
local function event_calendar(events, team, name, version, at, body)
  events[#events + 1] = EVENT.CALENDAR
  events[#events + 1] = table.concat({team, name, version, at, body}, '\n')
end
