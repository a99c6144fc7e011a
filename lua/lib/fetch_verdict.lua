-- The state that a waiting run moves to when it is fetched, and why if it does not start. `head`: of its job, nil where there is
-- none.
--include codes
local function fetch_verdict(run, record, head)
  if not head then return STATE.CANCELLED, 'the job has no definition' end
  if head.state == JOB_STATE.DELETED then return STATE.CANCELLED, 'the job was deleted' end
  if string.find(record.flags, FLAG.CANCEL, 1, true) then return STATE.CANCELLED, 'cancelled before it started' end
  if record.schedule_version < head.schedule_version and not string.find(record.flags, FLAG.MANUAL, 1, true)
      and tonumber(string.match(run, ':(%d+)$') or '0') > head.schedule_changed_at then
    return STATE.SKIPPED, head.state == JOB_STATE.PAUSED and 'paused' or 'withdrawn by an edit'
  end
  return STATE.RUNNING, ''
end
