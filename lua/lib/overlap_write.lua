-- Collects the events of what `overlap_decide` decided; returns its writes as a function, to be called after all others. Reads
-- only.
--include key
--include text
--include complete
--include complete_write
--include variadic
--include staged_member
--include signal_due
--include overlap_end
local function overlap_write(judge, events, now)
  local at = text(now)
  local ends = {records = {}, gone = {}, payloads = {}, retries = {}, last = {}, asked = {}}
  overlap_end(judge, ends, events, at)
  local completed = complete(ends.last, events)
  return function()
    variadic('HSET', key('runs'), ends.records, 2)
    variadic('HDEL', key('runs'), ends.gone, 1)
    variadic('HDEL', key('payloads'), ends.payloads, 1)
    variadic('ZREM', key('retries'), ends.retries, 1)
    for job, of_job in pairs(judge.jobs) do
      variadic('ZADD', key('active', job), of_job.added, 2)
      variadic('ZREM', key('active', job), of_job.removed, 1)
      local first = not next(of_job.going) and of_job.waiting[1]
      if first then
        -- Nobody else would release it: what it waited for has left no record.
        local record = of_job.records[first]
        redis.call('ZADD', key('staged'), at, staged_member(first, record.queue_key, record.flags))
        signal_due(at)
      end
    end
    complete_write(completed)
    for _, run in ipairs(ends.asked) do redis.call('PUBLISH', key('signals'), 'cancel ' .. run) end
  end
end
