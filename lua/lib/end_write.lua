-- Writes what `end_attempt` collected, journal first, and completes jobs whose last run it was.
--include key
--include text
--include journal
--include complete
--include complete_write
--include signal_due
--include variadic
--include run_ended_write
local function end_write(out, generation, now)
  local done = complete(out.last, out.events)
  journal('journal', generation, out.events)
  variadic('HSET', key('runs'), out.records, 2)
  variadic('HDEL', key('runs'), out.gone, 1)
  variadic('ZREM', key('leases'), out.ended, 1)
  variadic('ZADD', key('retries'), out.retries, 2)
  complete_write(done)
  run_ended_write(out, now)
  if out.earliest then signal_due(text(out.earliest)) end
end
