-- Puts on record, as skipped for `reason`, the occurrences that are due and not yet claimed when a change withdraws them;
-- of a paused job, those missed since.
-- Where the calendar does not reach, the range goes up to now and its count is a lower bound.
--include key
--include text
local function overdue(events, job, partition, head, now, reason)
  local due = tonumber(redis.call('ZSCORE', key('due', partition, 0), job) or 'inf')
  if head.state == 'p' then
    due, reason = tonumber(string.match(head.rest, '^|(%d+)') or 'inf'), 'paused'
  end
  if (head.state ~= 'a' and head.state ~= 'p') or due > now then return end
  local last, count = due, 1
  local every = head.kind == 'e' and tonumber(string.match(head.arg, ',([1-9]%d*)$'))
  if every then
    count = math.floor((now - due) / every) + 1
    last = due + (count - 1) * every
  elseif head.kind == 'c' then
    local cal = key('occurrences', head.arg)
    local from = tonumber(redis.call('ZSCORE', cal, 'from') or 'inf')
    local high = redis.call('ZRANGE', cal, -1, -1, 'WITHSCORES')
    last = now
    if from <= due and tonumber(high[2]) > now then
      last = due
      count = count + redis.call('ZCOUNT', cal, '(' .. text(due), text(now))
      local latest = redis.call('ZRANGE', cal, text(now), '(' .. text(due), 'BYSCORE', 'REV', 'LIMIT', 0, 1)
      if latest[1] and tonumber(latest[1]) then last = tonumber(latest[1]) end
    end
  end
  events[#events + 1] = 'k'
  events[#events + 1] = table.concat({job, text(due), text(last), text(count), reason, text(now)}, '\n')
end
