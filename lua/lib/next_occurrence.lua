-- The occurrence that follows `after` (ms) by a schedule's occurrence cache: a number, 'end' where none follows, nil where the
-- cache does not reach. Its entries are contiguous after the member `from`, so a gap is never taken for an end.
--include key
local following = {}
local function next_occurrence(schedule, after)
  local of_schedule = following[schedule]
  if not of_schedule then
    of_schedule = {}
    following[schedule] = of_schedule
  end
  local known = of_schedule[after]
  if known == nil then
    local entry = redis.call('ZRANGE', key('occurrences', schedule), '(' .. string.format('%.0f', after), '+inf',
      'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
    if not entry[1] or entry[1] == 'from' then known = false
    elseif entry[1] == 'end' then known = 'end'
    else known = tonumber(entry[2]) end
    of_schedule[after] = known
  end
  return known or nil
end
