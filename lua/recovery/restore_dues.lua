-- Moves due times on that an older state of Redis has and the ledger has as claimed, each only while the job has that version and
-- that due time, and only to a later one. No journal, since the ledger is where they come from. Each job at most once in a call.
-- MOVES
-- KEYS    shard jobs due heads body
-- ARGV    generation:text items:[job:text version:int due:text later:text]
--         later: '' where nothing is due any more.
-- REPLY   ok now moved:[job]... | closed
-- COST    1 ZSCORE a job; 6 calls a partition, variadic over its jobs
--include key
--include text
--include recovery_guard
--include now_ms
--include head_parse
--include partition_of
--include head_update
--include fetch_all
--include variadic
--include check_job_types
--include check_types
--include codes
local refusal = recovery_guard(a_generation)
if refusal then return refusal end
check_types({'heads'}, {})
-- By partition: of its jobs the places in ARGV.
local places, order, plans, moved = {}, {}, {}, {}
for i = group_at, #ARGV, group_width do
  local partition = partition_of(ARGV[i])
  if partition and not places[partition] then
    places[partition] = {}
    order[#order + 1] = partition
  end
  if partition then places[partition][#places[partition] + 1] = i end
end
for n, partition in ipairs(order) do
  check_job_types(partition)
  local jobs, plan = {}, {dues = {}, undue = {}}
  for k, i in ipairs(places[partition]) do jobs[k] = ARGV[i] end
  local values = fetch_all(key('jobs', partition, 0), jobs)
  for k, i in ipairs(places[partition]) do
    local head, later = head_parse(values[k]), ARGV[i + 3]
    local due = tonumber(redis.call('ZSCORE', key('due', partition, 0), jobs[k]) or 'nan')
    if head and head.state == JOB_STATE.ACTIVE and head.version == tonumber(ARGV[i + 1]) and due == tonumber(ARGV[i + 2])
        and (later == '' or (string.match(later, '^%d+$') and tonumber(later) > due)) then
      if later == '' then
        plan.undue[#plan.undue + 1] = jobs[k]
      else
        plan.dues[#plan.dues + 1] = later
        plan.dues[#plan.dues + 1] = jobs[k]
      end
      moved[#moved + 1] = jobs[k]
    end
  end
  plans[n] = plan
end
for n, partition in ipairs(order) do
  variadic('ZADD', key('due', partition, 0), plans[n].dues, 2)
  variadic('ZREM', key('due', partition, 0), plans[n].undue, 1)
  head_update(partition)
end
return {'ok', text(now_ms()), moved}
