-- Collects a run that was claimed under an earlier schedule version and has not started, so that it stands under the present
-- one; `last`: FLAG.LAST where no occurrence follows, else ''.
--include codes
--include run_pack
--include run_first_revision
--include event_run
local function run_reschedule(out, run, record, head, at, last)
  if record.state ~= STATE.QUEUED or record.schedule_version >= head.schedule_version then return end
  record.schedule_version, record.revision = head.schedule_version, run_first_revision(head.schedule_version)
  record.flags = last .. string.gsub(record.flags, FLAG.LAST, '')
  local packed = run_pack(record)
  event_run(out.events, run, packed, at, '')
  out.records[#out.records + 1] = run
  out.records[#out.records + 1] = packed
end
