-- Collects the end of runs that `overlap_decide` skipped or cancelled: their events, and in `ends` what is to be written. Those
-- that run already are asked to stop. Reads only.
--include codes
--include job_of
--include run_pack
--include retry_member
--include event_run
local function overlap_end(judge, ends, events, at)
  local function ended(run, record, state, detail)
    record.state, record.revision = state, record.revision + 1
    event_run(events, run, run_pack(record), at, detail)
    ends.gone[#ends.gone + 1] = run
    if string.find(record.flags, FLAG.PAYLOAD, 1, true) then ends.payloads[#ends.payloads + 1] = run end
    if string.find(record.flags, FLAG.LAST, 1, true) then ends.last[#ends.last + 1] = {job_of(run), record.schedule_version} end
  end
  for _, skipped in ipairs(judge.skipped) do ended(skipped[1], skipped[2], STATE.SKIPPED, 'overlap') end
  for _, cancelled in ipairs(judge.cancelled) do
    local run, record = cancelled[1], cancelled[2]
    if record.state == STATE.RETRYING then
      ends.retries[#ends.retries + 1] = retry_member(run, record.queue_key)
      ended(run, record, STATE.CANCELLED, 'cancelled for the next run')
      local removed = judge.jobs[job_of(run)].removed
      removed[#removed + 1] = run
    else
      record.flags, record.revision = record.flags .. FLAG.CANCEL, record.revision + 1
      local packed = run_pack(record)
      event_run(events, run, packed, at, '')
      ends.records[#ends.records + 1] = run
      ends.records[#ends.records + 1] = packed
      if record.state == STATE.RUNNING then ends.asked[#ends.asked + 1] = run end
    end
  end
end
