-- Collects a new run as QUEUED: its event, record and staged entry. `out`: {events, records, staged}. overlap: the letter
-- of the policy, '' for none.
--include run_pack
--include run_first_rev
--include staged_member
local function run_put(out, run, head, due, at, flags, overlap)
  flags = flags .. overlap
  local record = run_pack({state = 'Q', rev = run_first_rev(head.sv), lane = head.lane, sv = head.sv, attempt = 0,
    fence = '0', worker = '', claimed = at, due = due, started = '0', flags = flags})
  local e, r, s = out.events, out.records, out.staged
  e[#e + 1] = 'r'
  e[#e + 1] = run .. '\n' .. record .. '\n' .. at .. '\n'
  r[#r + 1] = run
  r[#r + 1] = record
  s[#s + 1] = due
  s[#s + 1] = staged_member(run, head.lane, flags)
end
