-- A run record, nil where it is none.
local function run_parse(value)
  if not value then return nil end
  local state, revision, queue_key, schedule_version, attempt, fence, worker, claimed, due, started, flags =
    string.match(value, '^1|(%a)|(%d+)|([^|]*)|(%d+)|(%d+)|(%d+)|([^|]*)|(%d+)|(%d+)|(%d+)|(%a*)')
  if not state then return nil end
  return {state = state, revision = tonumber(revision), queue_key = queue_key, schedule_version = tonumber(schedule_version), attempt = tonumber(attempt),
    fence = fence, worker = worker, claimed = claimed, due = due, started = started, flags = flags}
end
