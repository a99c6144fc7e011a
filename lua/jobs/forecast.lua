-- What comes due in a partition up to an instant, jobs of one team, schedule and window counted together. Reads only; one
-- page of jobs, in the order of their due times.
-- MOVES
-- KEYS    shard due jobs
-- ARGV    generation:text partition:int skip:int until_ms:int limit:int
-- REPLY   ok now more groups:[team kind arg window count first job]... | closed | stale_generation generation
--         arg: the schedule's id, an interval's length (ms), '' of a one-off. first: the earliest due (ms) of the group, whose
--         one-offs and intervals are due in the same minute. job: one of them.
-- COST    2 calls
--include guard
--include now_ms
--include key
--include text
--include head_parse
--include fetch_all
--include codes
--include has_optional
--include optional_parse
local refusal = guard(a_generation)
if refusal then return refusal end
local entries = redis.call('ZRANGE', key('due', a_partition, 0), a_skip, a_skip + a_limit - 1, 'WITHSCORES')
local jobs, dues, more = {}, {}, #entries == 2 * a_limit and '1' or '0'
for i = 1, #entries, 2 do
  if tonumber(entries[i + 1]) > a_until_ms then
    more = '0'
    break
  end
  jobs[#jobs + 1] = entries[i]
  dues[#dues + 1] = tonumber(entries[i + 1])
end
local values = fetch_all(key('jobs', a_partition, 0), jobs)
local groups, places = {}, {}
for i = 1, #jobs do
  local head = head_parse(values[i])
  if head and head.state == JOB_STATE.ACTIVE then
    local team = string.match(head.queue_key, '^[^:]*:([^:]*)')
    local arg = head.kind == SCHEDULE.COMPUTED and head.arg or ''
    local minute = ''
    if head.kind == SCHEDULE.INTERVAL then arg = string.match(head.arg, ',(%d+)$') or '' end
    if head.kind ~= SCHEDULE.COMPUTED then minute = text(math.floor(dues[i] / 60000)) end
    local window = has_optional(head) and string.match(optional_parse(head).window, '^%d*') or ''
    local id = table.concat({team or '', head.kind, arg, minute, window}, '|')
    local group = places[id]
    if group then
      groups[group + 5] = groups[group + 5] + 1
    else
      places[id] = #groups
      for _, part in ipairs({team or '', head.kind, arg, window, 1, text(dues[i]), jobs[i]}) do groups[#groups + 1] = part end
    end
  end
end
for i = 5, #groups, 7 do groups[i] = text(groups[i]) end
return {'ok', text(now_ms()), more, groups}
