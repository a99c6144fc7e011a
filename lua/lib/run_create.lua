-- Collects a new run as QUEUED: its event, record and staged entry. `out`: {events, records, staged}. due: when it is to be
-- released; at: now; both as text. flags: upper-case letters; overlap: the letter of the policy, '' for none.
--include codes
--include run_pack
--include run_first_revision
--include staged_member
--include event_run
local function run_create(out, run, head, due, at, flags, overlap)
  flags = flags .. overlap
  local packed = run_pack({
    state = STATE.QUEUED,
    revision = run_first_revision(head.schedule_version),
    queue_key = head.queue_key,
    schedule_version = head.schedule_version,
    attempt = 0,
    fence = '0',
    worker = '',
    claimed_at = at,
    due_at = due,
    started_at = '0',
    flags = flags,
  })
  event_run(out.events, run, packed, at, '')
  local records, staged = out.records, out.staged
  records[#records + 1] = run
  records[#records + 1] = packed
  staged[#staged + 1] = due
  staged[#staged + 1] = staged_member(run, head.queue_key, flags)
end
