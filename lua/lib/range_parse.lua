-- Reads a member of `catchup`, a range of occurrences that are pending: {job, from, to, schedule_version, flags, made_at}, all
-- as text; nil where it is none.
local function range_parse(member)
  local job, from, to, schedule_version, flags, made_at = string.match(member, '^([^|]+)|(%d+)|(%d+)|(%d+)|(%a*)|(%d+)$')
  if not job then return nil end
  return {job = job, from = from, to = to, schedule_version = schedule_version, flags = flags, made_at = made_at}
end
