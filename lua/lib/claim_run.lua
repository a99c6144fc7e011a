-- Collects the run of an occurrence: a new one, or the one that was claimed under an earlier schedule version. `start`: when it
-- is to be released, as text; last: FLAG.LAST where no occurrence follows, else ''; packed: the record that is there, if any.
--include codes
--include key
--include run_parse
--include run_pack
--include run_create
--include run_first_revision
--include staged_member
--include overlap_letter
--include event_run
--include job_of
local function claim_run(plan, run, head, packed, start, last, overlap)
  local record = run_parse(packed)
  if not record then return run_create(plan, run, head, start, plan.at, last, overlap) end
  if record.state ~= STATE.QUEUED or record.schedule_version >= head.schedule_version then return end
  local before = staged_member(run, record.queue_key, record.flags)
  record.schedule_version, record.revision = head.schedule_version, run_first_revision(head.schedule_version)
  if redis.call('ZSCORE', key('staged'), before) and not redis.call('ZSCORE', key('active', job_of(run)), run) then
    record.flags, record.due_at = last .. overlap, start
    plan.unstaged[#plan.unstaged + 1] = before
    plan.staged[#plan.staged + 1] = start
    plan.staged[#plan.staged + 1] = staged_member(run, record.queue_key, record.flags)
  else
    -- Released already, after it waited or at once: judged by the policy that it had.
    record.flags = last .. (overlap_letter(record.flags) or '')
  end
  packed = run_pack(record)
  event_run(plan.events, run, packed, plan.at, '')
  plan.records[#plan.records + 1] = run
  plan.records[#plan.records + 1] = packed
end
