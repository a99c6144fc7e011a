-- Collects a new run as QUEUED: its event, record and staged entry. `out`: {events, records, staged}. overlap: the letter
-- of the policy, '' for none.
--include run_pack
--include run_first_revision
--include staged_member
local function run_create(out, run, head, due, at, flags, overlap)
  flags = flags .. overlap
  local record = run_pack({state = 'Q', revision = run_first_revision(head.schedule_version), queue_key = head.queue_key, schedule_version = head.schedule_version, attempt = 0,
    fence = '0', worker = '', claimed = at, due = due, started = '0', flags = flags})
  local e, r, s = out.events, out.records, out.staged
  e[#e + 1] = 'r'
  e[#e + 1] = run .. '\n' .. record .. '\n' .. at .. '\n'
  r[#r + 1] = run
  r[#r + 1] = record
  s[#s + 1] = due
  s[#s + 1] = staged_member(run, head.queue_key, flags)
end
