-- Collects the event of a catch-up range that was made or has moved on; from past `to`: nothing of it is left.
local function catchup_event(events, member, at)
  local job, from, to, schedule_version, flags, made = string.match(member, '^([^|]+)|(%d+)|(%d+)|(%d+)|(%a*)|(%d+)$')
  events[#events + 1] = 'g'
  events[#events + 1] = table.concat({job, made, to, from, schedule_version, flags, at}, '\n')
end
