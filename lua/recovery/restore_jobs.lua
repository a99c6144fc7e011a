-- Writes back definitions that the ledger has in a later version than Redis, with their due times and the ends of pauses; no
-- journal, since the ledger is where they come from. Each job at most once in a call. Where only something else than the schedule
-- differs, Redis may have gone on by the earlier version meanwhile: its own due time stands if that is the later one.
-- MOVES
-- KEYS    shard jobs body due heads pauses signals
-- ARGV    generation:text items:[job:text due:text value:text]
-- REPLY   ok now count | closed
-- COST    10 calls a partition, variadic over its jobs; 1 more for a job that is there in an earlier version
--include key
--include text
--include recovery_guard
--include now_ms
--include head_parse
--include partition_of
--include head_update
--include signal_due
--include fetch_all
--include variadic
--include check_job_types
--include check_types
--include codes
--include optional_parse
--include job_rank
local refusal = recovery_guard(a_generation, true)
if refusal then return refusal end
check_types({'heads', 'pauses'}, {})
-- By partition: of its jobs the places in ARGV.
local places, order = {}, {}
for i = group_at, #ARGV, group_width do
  local partition = partition_of(ARGV[i])
  if not places[partition] then
    places[partition] = {}
    order[#order + 1] = partition
  end
  places[partition][#places[partition] + 1] = i
end
local plans, count = {}, 0
for _, partition in ipairs(order) do
  check_job_types(partition)
  local jobs = {}
  for n, i in ipairs(places[partition]) do jobs[n] = ARGV[i] end
  local olds = fetch_all(key('jobs', partition, 0), jobs)
  local plan = {values = {}, bodies = {}, inline = {}, dues = {}, undue = {}, ends = {}, endless = {}}
  for n, i in ipairs(places[partition]) do
    local job, due, value = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    local new = head_parse(value)
    local old = new and head_parse(olds[n])
    if new and job_rank(new.state) and string.match(due, '^%d*$') and (not old or old.version < new.version
        or (old.version == new.version and (job_rank(old.state) or -1) < job_rank(new.state))) then
      local values = plan.values
      local at = string.find(value, '\n', 1, true)
      values[#values + 1] = job
      if at and #value - at > 1024 then
        values[#values + 1] = string.sub(value, 1, at)
        plan.bodies[#plan.bodies + 1] = job
        plan.bodies[#plan.bodies + 1] = string.sub(value, at + 1)
      else
        values[#values + 1] = value
        plan.inline[#plan.inline + 1] = job
      end
      local paused_until = new.state == JOB_STATE.PAUSED and optional_parse(new).paused_until or ''
      if string.match(paused_until, '^%d+$') then
        plan.ends[#plan.ends + 1] = paused_until
        plan.ends[#plan.ends + 1] = job
      else
        plan.endless[#plan.endless + 1] = job
      end
      local goes_on = old and old.schedule_version == new.schedule_version
        and old.state == JOB_STATE.ACTIVE and new.state == JOB_STATE.ACTIVE
      if goes_on and due ~= '' then
        local own = redis.call('ZSCORE', key('due', partition, 0), job)
        if not own then due = '' elseif tonumber(own) > tonumber(due) then due = text(tonumber(own)) end
      end
      if due == '' or new.state == JOB_STATE.PAUSED then
        plan.undue[#plan.undue + 1] = job
      else
        plan.dues[#plan.dues + 1] = due
        plan.dues[#plan.dues + 1] = job
      end
      count = count + 1
    end
  end
  plans[#plans + 1] = plan
end
local earliest
local paused = redis.call('ZCARD', key('pauses')) > 0
for n, partition in ipairs(order) do
  local plan = plans[n]
  local due = key('due', partition, 0)
  variadic('HSET', key('jobs', partition, 0), plan.values, 2)
  variadic('HSET', key('body', partition), plan.bodies, 2)
  if redis.call('EXISTS', key('body', partition)) == 1 then variadic('HDEL', key('body', partition), plan.inline, 1) end
  if paused then variadic('ZREM', key('pauses'), plan.endless, 1) end
  variadic('ZADD', key('pauses'), plan.ends, 2)
  variadic('ZADD', due, plan.dues, 2)
  variadic('ZREM', due, plan.undue, 1)
  if #plan.dues + #plan.undue > 0 then
    local first = tonumber(head_update(partition))
    for i = 1, #plan.dues, 2 do
      if tonumber(plan.dues[i]) == first and (not earliest or first < earliest) then earliest = first end
    end
  end
end
if earliest then signal_due(text(earliest)) end
return {'ok', text(now_ms()), text(count)}
