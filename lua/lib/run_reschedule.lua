-- Collects a run that was claimed under an earlier schedule version and has not started, so that it stands under the present one;
-- `last`: 'L' where no occurrence follows.
--include run_pack
--include run_first_revision
local function run_reschedule(out, run, old, head, at, last)
  if old.state ~= 'Q' or old.schedule_version >= head.schedule_version then return end
  old.schedule_version, old.revision = head.schedule_version, run_first_revision(head.schedule_version)
  old.flags = last .. string.gsub(old.flags, 'L', '')
  local record = run_pack(old)
  out.events[#out.events + 1] = 'r'
  out.events[#out.events + 1] = run .. '\n' .. record .. '\n' .. at .. '\n'
  out.records[#out.records + 1] = run
  out.records[#out.records + 1] = record
end
