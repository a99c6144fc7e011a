-- Writes definitions, each only over the version the caller has seen; with atomic = 1 all of them or none.
-- MOVES
-- KEYS    shard pauses due heads jobs body occurrences definitions signals
-- ARGV    generation:text atomic:int items:[job:text expect:int due:text value:text]
--         expect 0: no such job yet; else its present version. due '': none; 'keep': as it is, for a job
--         still in the state that value says. full: too little memory is left for jobs that are new.
-- REPLY   ok now journal_id tag... (ok, exists, conflict, deleted, missing, full) | refused now tags:[tag]... | closed | stale_generation generation
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
--include extras
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'heads', 'pauses'}, {})
local now = now_ms()
local tags, events, writes, bad = {}, {}, {}, false
local planned = {}
for i = group_at, #ARGV, group_width do
  local job, expect, due, value = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3]
  local p = partition_of(job)
  local old = head_parse(redis.call('HGET', key('jobs', p, 0), job))
  local tag = 'ok'
  if not p or not head_parse(value) or (due ~= '' and due ~= 'keep' and not tonumber(due)) then
    return redis.error_reply('put: no job record for ' .. job)
  elseif planned[job] then tag = 'exists'
  elseif old and old.state == 'd' then tag = 'deleted'
  elseif expect == 0 and old then tag = 'exists'
  elseif expect == 0 and marker.load_level >= 1 then tag = 'full'
  elseif expect > 0 and not old then tag = 'missing'
  elseif expect > 0 and old.version ~= expect then tag = 'conflict'
  elseif old and head_parse(value).schedule_version > old.schedule_version and tonumber(due) and tonumber(due) <= now
      and head_parse(value).kind ~= 'o' then
    -- Computed too long ago: what is due by now may have had its run.
    tag = 'conflict'
  elseif due == 'keep' and (not old or old.state ~= head_parse(value).state) then tag = 'conflict' end
  tags[#tags + 1] = tag
  if tag == 'ok' then
    check_job_types(p)
    planned[job] = true
    if old and head_parse(value).schedule_version > old.schedule_version then overdue(events, job, p, old, now, 'withdrawn by an edit') end
    events[#events + 1] = 'j'
    events[#events + 1] = job .. '\n' .. value
    local new = head_parse(value)
    writes[#writes + 1] = {p, job, value, due, new.state == 'p' and extras(new)[4] or '', old and old.state == 'p'}
  else
    bad = true
  end
end
if bad and a_atomic == 1 then return {'refused', text(now), tags} end
local id = journal('definitions', marker.generation, events) or ''
for i = 1, #writes do
  local w = writes[i]
  job_write(w[1], w[2], w[3])
  if w[4] ~= 'keep' then due_set(w[1], w[2], w[4]) end
  if w[5] ~= '' then redis.call('ZADD', key('pauses'), w[5], w[2])
  elseif w[6] then redis.call('ZREM', key('pauses'), w[2]) end
end
return {'ok', text(now), id, tags}
