-- Puts on record, as skipped for `reason`, the occurrences that are due and not yet claimed when a change withdraws them;
-- of a paused job, those missed since. Where the occurrence cache does not reach, the skip goes up to now and its count is a
-- lower bound.
--include codes
--include key
--include text
--include optional_parse
--include event_skip
local function overdue(events, job, partition, head, now, reason)
  local due = tonumber(redis.call('ZSCORE', key('due', partition, 0), job) or 'inf')
  if head.state == JOB_STATE.PAUSED then
    due, reason = tonumber(optional_parse(head).paused_from) or math.huge, 'paused'
  end
  if (head.state ~= JOB_STATE.ACTIVE and head.state ~= JOB_STATE.PAUSED) or due > now then return end
  local last, count = due, 1
  local every = head.kind == SCHEDULE.INTERVAL and tonumber(string.match(head.arg, ',([1-9]%d*)$'))
  if every then
    count = math.floor((now - due) / every) + 1
    last = due + (count - 1) * every
  elseif head.kind == SCHEDULE.COMPUTED then
    local cache = key('occurrences', head.arg)
    local from = tonumber(redis.call('ZSCORE', cache, 'from') or 'inf')
    local high = redis.call('ZRANGE', cache, -1, -1, 'WITHSCORES')
    last = now
    if from <= due and tonumber(high[2]) > now then
      last = due
      count = count + redis.call('ZCOUNT', cache, '(' .. text(due), text(now))
      local latest = redis.call('ZRANGE', cache, text(now), '(' .. text(due), 'BYSCORE', 'REV', 'LIMIT', 0, 1)
      if latest[1] and tonumber(latest[1]) then last = tonumber(latest[1]) end
    end
  end
  event_skip(events, job, text(due), text(last), text(count), reason, text(now))
end
