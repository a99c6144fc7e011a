-- The head of a job's value, nil where it is none. Further fields and the body are left alone in `rest`.
local function head_parse(value)
  if not value then return nil end
  local state, version, sv, sv_at, kind, arg, misfire, grace, lane, rest =
    string.match(value, '^1|(%a)|(%d+)|(%d+)|(%d+)|(%a)|([^|\n]*)|(%a)|(%d+)|([^|\n]*)(.*)$')
  if not state then return nil end
  return {state = state, version = tonumber(version), sv = tonumber(sv), sv_at = tonumber(sv_at), kind = kind,
    arg = arg, misfire = misfire, grace = tonumber(grace), lane = lane, rest = rest}
end
