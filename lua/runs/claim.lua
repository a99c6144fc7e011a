-- Claims every occurrence due up to the horizon and advances its job, in one step: the run exists and the due time has
-- moved, or neither. What needs a computation (of occurrences, of a misfire) stays due and is named in the reply.
-- MOVES   none -> QUEUED, QUEUED -> QUEUED
-- KEYS    shard owners due heads jobs occurrences runs staged active journal quarantine restore
-- ARGV    generation:text scheduler:text horizon_ms:int limit:int items:[partition:int epoch:int]
--         epoch 0: ownership is not checked. limit: jobs looked at.
-- REPLY   ok now claimed more needs:[schedule after job]... late:[job due]... stale:[partition]... | full now | closed |
--         stale_generation generation
-- COST    3 calls a partition and 1 lookup a distinct (schedule, instant); variadic over the runs
--include guard
--include now_ms
--include key
--include text
--include fetch_all
--include check_types
--include restore_in_progress
--include claim_read
--include claim_plan
--include claim_write
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'heads'}, {'quarantine'})
local now = now_ms()
local at = text(now)
if marker.load_level >= 2 then return {'full', at} end
local plan = {
  now = now,
  at = at,
  horizon = now + a_horizon_ms,
  -- A watermark would cover jobs that are not restored yet, whose occurrences nobody has claimed.
  marks = not restore_in_progress(),
  events = {}, records = {}, staged = {}, unstaged = {}, unreadable = {}, partitions = {},
  needs = {}, needed = {}, late = {},
}
local partitions, stale, left, more = {}, {}, a_limit, 0
for i = group_at, #ARGV, group_width do partitions[#partitions + 1] = ARGV[i] end
local owners = fetch_all(key('owners'), partitions)
for n, partition in ipairs(partitions) do
  local epoch = ARGV[group_at + (n - 1) * group_width + 1]
  if epoch ~= '0' and owners[n] ~= a_scheduler .. '|' .. epoch then
    stale[#stale + 1] = partition
  elseif left <= 0 then
    more = 1
    break
  else
    local page = claim_read(partition, left, plan.horizon)
    left = left - #page.jobs
    if page.more then more = 1 end
    claim_plan(plan, page)
  end
end
claim_write(plan, marker.generation)
return {'ok', at, text(#plan.staged / 2), text(more), plan.needs, plan.late, stale}
