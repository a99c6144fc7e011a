-- Collects a run that was claimed under an earlier schedule version and has not started, so that it stands under the present one;
-- `last`: 'L' where no occurrence follows.
--include run_pack
--include run_first_rev
local function run_renew(out, run, old, head, at, last)
  if old.state ~= 'Q' or old.sv >= head.sv then return end
  old.sv, old.rev = head.sv, run_first_rev(head.sv)
  old.flags = last .. string.gsub(old.flags, 'L', '')
  local record = run_pack(old)
  out.events[#out.events + 1] = 'r'
  out.events[#out.events + 1] = run .. '\n' .. record .. '\n' .. at .. '\n'
  out.records[#out.records + 1] = run
  out.records[#out.records + 1] = record
end
