-- The occurrence that follows `after` (ms) in a cached calendar: a number, 'end' where none follows, nil where the
-- cache does not reach. Its entries are contiguous after the member `from`, so a gap is never taken for an end.
--include key
local memo = {}
local function next_occurrence(schedule, after)
  local m = memo[schedule]
  if not m then m = {} memo[schedule] = m end
  local known = m[after]
  if known == nil then
    local found = redis.call('ZRANGE', key('occurrences', schedule), '(' .. string.format('%.0f', after), '+inf',
      'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
    if not found[1] or found[1] == 'from' then known = false
    elseif found[1] == 'end' then known = 'end'
    else known = tonumber(found[2]) end
    m[after] = known
  end
  return known or nil
end
