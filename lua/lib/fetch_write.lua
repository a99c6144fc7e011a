-- Writes what became of the fetched runs, journal first. `completed`: what `complete` prepared.
--include key
--include text
--include journal
--include variadic
--include signal_due
--include complete_write
--include run_ended_write
local function fetch_write(plan, generation, completed)
  journal('journal', generation, plan.events)
  if #plan.given > 0 then redis.call('SET', key('fence'), text(plan.fence)) end
  variadic('HSET', key('quarantine'), plan.unreadable, 2)
  variadic('HSET', key('runs'), plan.records, 2)
  variadic('ZADD', key('leases'), plan.leases, 2)
  variadic('HDEL', key('runs'), plan.gone, 1)
  variadic('ZADD', key('staged'), plan.staged, 2)
  variadic('ZADD', key('retries'), plan.retries, 2)
  if #plan.staged + #plan.retries > 0 then signal_due(plan.again) end
  complete_write(completed)
  run_ended_write(plan, plan.now)
  for queue, count in pairs(plan.starts) do
    -- What is not a number begins anew: nothing may fail any more.
    if type(redis.pcall('HINCRBY', key('starts'), queue, count)) == 'table' then
      redis.call('HSET', key('starts'), queue, count)
    end
  end
end
