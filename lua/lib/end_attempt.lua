-- Collects the end of a running attempt at `run` (its record r): the event, and what changes with the outcome S, T (retry
-- after `delay` ms), D or C. Whoever asked for a cancel gets it unless the attempt succeeded.
--include text
--include run_pack
--include run_ended
local function end_attempt(out, run, r, outcome, now, delay, detail)
  if outcome ~= 'S' and string.find(r.flags, 'X', 1, true) then outcome = 'C' end
  r.revision, r.state = r.revision + 1, outcome
  local e, s, t = out.events, out.records, out.retries
  out.ended[#out.ended + 1] = run
  local at = text(now)
  if outcome == 'T' then
    -- The record is due when the next attempt is; the event tells when the one that ended was.
    at = at .. ',' .. r.due
    r.due = text(now + delay)
  end
  e[#e + 1] = 'r'
  e[#e + 1] = run .. '\n' .. run_pack(r) .. '\n' .. at .. '\n' .. detail
  if outcome == 'T' then
    s[#s + 1] = run
    s[#s + 1] = run_pack(r)
    t[#t + 1] = r.due
    t[#t + 1] = run .. '|' .. r.queue_key
    if not out.earliest or now + delay < out.earliest then out.earliest = now + delay end
  else
    out.gone[#out.gone + 1] = run
    run_ended(out, run, r.flags)
    if string.find(r.flags, 'L', 1, true) then out.last[#out.last + 1] = {string.sub(run, 1, 15), r.schedule_version} end
  end
end
