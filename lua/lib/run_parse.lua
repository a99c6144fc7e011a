-- A run record, nil where it is none.
local function run_parse(value)
  if not value then return nil end
  local state, rev, lane, sv, attempt, fence, worker, claimed, due, started, flags =
    string.match(value, '^1|(%a)|(%d+)|([^|]*)|(%d+)|(%d+)|(%d+)|([^|]*)|(%d+)|(%d+)|(%d+)|(%a*)')
  if not state then return nil end
  return {state = state, rev = tonumber(rev), lane = lane, sv = tonumber(sv), attempt = tonumber(attempt),
    fence = fence, worker = worker, claimed = claimed, due = due, started = started, flags = flags}
end
