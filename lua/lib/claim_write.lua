-- Writes what `claim_plan` collected, journal first.
--include key
--include text
--include journal
--include variadic
local function claim_write(plan, generation)
  journal('journal', generation, plan.events)
  variadic('HSET', key('quarantine'), plan.unreadable, 2)
  variadic('HSET', key('runs'), plan.records, 2)
  variadic('ZREM', key('staged'), plan.unstaged, 1)
  variadic('ZADD', key('staged'), plan.staged, 2)
  local heads, headless = {}, {}
  for _, change in ipairs(plan.partitions) do
    local due = key('due', change.partition, 0)
    variadic('ZADD', due, change.advanced, 2)
    variadic('ZREM', due, change.removed, 1)
    if change.lowest then
      heads[#heads + 1] = text(change.lowest)
      heads[#heads + 1] = change.partition
    else
      headless[#headless + 1] = change.partition
    end
  end
  variadic('ZADD', key('heads'), heads, 2)
  variadic('ZREM', key('heads'), headless, 1)
end
