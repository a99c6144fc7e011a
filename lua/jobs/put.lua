-- Writes definitions, each only over the version the caller has seen; with atomic = 1 all of them or none.
-- MOVES
-- KEYS    shard pauses due heads jobs body occurrences definitions signals
-- ARGV    generation:text atomic:int items:[job:text expect:int due:text value:text]
--         expect 0: no such job yet; else its present version. due '': none; 'keep': as it is, for a job
--         still in the state that value says. full: too little memory is left for jobs that are new.
-- REPLY   ok now journal_id tag... (ok, exists, conflict, deleted, missing, full) | refused now tags:[tag]... | closed |
--         stale_generation generation
-- COST    5 calls an item
--include guard
--include now_ms
--include journal
--include head_parse
--include partition_of
--include job_write
--include due_set
--include overdue
--include text
--include check_types
--include check_job_types
--include codes
--include event_job
--include key
--include optional_parse
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'heads', 'pauses'}, {})
local now = now_ms()
local tags, events, writes, refused = {}, {}, {}, false
local planned = {}
for i = group_at, #ARGV, group_width do
  local job, expect, due, value = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3]
  local partition = partition_of(job)
  local old = head_parse(redis.call('HGET', key('jobs', partition, 0), job))
  local new = head_parse(value)
  local rescheduled = old and new and new.schedule_version > old.schedule_version
  local tag = 'ok'
  if not partition or not new or (due ~= '' and due ~= 'keep' and not tonumber(due)) then
    return redis.error_reply('put: this is not a job record: ' .. job)
  elseif planned[job] then tag = 'exists'
  elseif old and old.state == JOB_STATE.DELETED then tag = 'deleted'
  elseif expect == 0 and old then tag = 'exists'
  elseif expect == 0 and marker.load_level >= 1 then tag = 'full'
  elseif expect > 0 and not old then tag = 'missing'
  elseif expect > 0 and old.version ~= expect then tag = 'conflict'
  elseif rescheduled and tonumber(due) and tonumber(due) <= now and new.kind ~= SCHEDULE.INSTANT then
    -- Computed too long ago: what is due by now may have had its run.
    tag = 'conflict'
  elseif due == 'keep' and (not old or old.state ~= new.state) then tag = 'conflict' end
  tags[#tags + 1] = tag
  if tag == 'ok' then
    check_job_types(partition)
    planned[job] = true
    if rescheduled then overdue(events, job, partition, old, now, 'withdrawn by an edit') end
    event_job(events, job, value)
    writes[#writes + 1] = {partition = partition, job = job, value = value, due = due,
      paused_until = new.state == JOB_STATE.PAUSED and optional_parse(new).paused_until or '',
      was_paused = old and old.state == JOB_STATE.PAUSED}
  else
    refused = true
  end
end
if refused and a_atomic == 1 then return {'refused', text(now), tags} end
local id = journal('definitions', marker.generation, events) or ''
for _, write in ipairs(writes) do
  job_write(write.partition, write.job, write.value)
  if write.due ~= 'keep' then due_set(write.partition, write.job, write.due) end
  if write.paused_until ~= '' then redis.call('ZADD', key('pauses'), write.paused_until, write.job)
  elseif write.was_paused then redis.call('ZREM', key('pauses'), write.job) end
end
return {'ok', text(now), id, tags}
