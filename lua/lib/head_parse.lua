-- The head of a job's value, nil where it is none. Further fields and the body are left alone in `rest`.
local function head_parse(value)
  if not value then return nil end
  local state, version, schedule_version, schedule_changed_at, kind, arg, misfire, grace, queue_key, rest =
    string.match(value, '^1|(%a)|(%d+)|(%d+)|(%d+)|(%a)|([^|\n]*)|(%a)|(%d+)|([^|\n]*)(.*)$')
  if not state then return nil end
  return {state = state, version = tonumber(version), schedule_version = tonumber(schedule_version), schedule_changed_at = tonumber(schedule_changed_at), kind = kind,
    arg = arg, misfire = misfire, grace = tonumber(grace), queue_key = queue_key, rest = rest}
end
