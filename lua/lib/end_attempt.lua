-- Collects the end of a running attempt at `run`: the event, and what changes with the outcome SUCCEEDED, RETRYING (after
-- `delay` ms), DEAD or CANCELLED. Whoever asked for a cancel gets it unless the attempt succeeded.
--include codes
--include text
--include job_of
--include run_pack
--include run_ended
--include retry_member
--include event_run
local function end_attempt(out, run, record, outcome, now, delay, detail)
  if outcome ~= STATE.SUCCEEDED and string.find(record.flags, FLAG.CANCEL, 1, true) then outcome = STATE.CANCELLED end
  record.revision, record.state = record.revision + 1, outcome
  out.ended[#out.ended + 1] = run
  local at = text(now)
  if outcome ~= STATE.RETRYING then
    event_run(out.events, run, run_pack(record), at, detail)
    out.gone[#out.gone + 1] = run
    run_ended(out, run, record.flags)
    if string.find(record.flags, FLAG.LAST, 1, true) then out.last[#out.last + 1] = {job_of(run), record.schedule_version} end
    return
  end
  local was_due, records, retries = record.due_at, out.records, out.retries
  record.due_at = text(now + delay)
  local packed = run_pack(record)
  -- The record is due when the next attempt is; the event tells when the one that ended was.
  event_run(out.events, run, packed, at .. ',' .. was_due, detail)
  records[#records + 1] = run
  records[#records + 1] = packed
  retries[#retries + 1] = record.due_at
  retries[#retries + 1] = retry_member(run, record.queue_key)
  if not out.earliest or now + delay < out.earliest then out.earliest = now + delay end
end
