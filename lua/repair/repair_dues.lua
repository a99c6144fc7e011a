-- Looks at a page of a partition's due set: entries of jobs that are not active are dropped, those without a readable
-- definition told to the caller; the partition's head is made true.
-- MOVES
-- KEYS    shard due heads jobs signals
-- ARGV    generation:text partition:int cursor:text count:int write:int
--         write 0: only finds.
-- REPLY   ok now cursor found:[kind job]... lost:[job due value]... | closed | stale_generation generation
--         lost: value '' where there is no definition.
-- COST    5 calls a page
--include guard
--include now_ms
--include key
--include text
--include head_parse
--include head_update
--include signal_due
--include fetch_all
--include variadic
--include check_types
--include codes
local refusal = guard(a_generation)
if refusal then return refusal end
check_types({'heads'}, {})
local due = key('due', a_partition, 0)
local page = redis.call('ZSCAN', due, a_cursor, 'COUNT', a_count)
local jobs, dues = {}, {}
for i = 1, #page[2], 2 do
  jobs[#jobs + 1] = page[2][i]
  dues[#dues + 1] = page[2][i + 1]
end
local values = fetch_all(key('jobs', a_partition, 0), jobs)
local found, lost, gone = {}, {}, {}
for i = 1, #jobs do
  local head = head_parse(values[i])
  if not head then
    for _, part in ipairs({jobs[i], text(tonumber(dues[i])), values[i] or ''}) do lost[#lost + 1] = part end
  elseif head.state ~= JOB_STATE.ACTIVE then
    found[#found + 1] = 'due_of_inactive_job'
    found[#found + 1] = jobs[i]
    gone[#gone + 1] = jobs[i]
  end
end
-- Before anything is dropped: what a drop changes about the head is no lie.
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
local head = redis.call('ZSCORE', key('heads'), a_partition)
if tonumber(first[2] or '-1') ~= tonumber(head or '-1') then
  found[#found + 1] = 'head_wrong'
  found[#found + 1] = text(a_partition)
end
if a_write == 1 then
  variadic('ZREM', due, gone, 1)
  if #found > 0 then
    local earliest = head_update(a_partition)
    if earliest then signal_due(earliest) end
  end
end
return {'ok', text(now_ms()), page[1], found, lost}
