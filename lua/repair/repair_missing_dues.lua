-- Makes active jobs due again that had no due time, and lets pauses end that were in no set, each only if the job is still as
-- the caller saw it.
-- MOVES
-- KEYS    shard due heads pauses jobs signals
-- ARGV    generation:text items:[job:text head:text due:text]
--         head: the job's value up to its newline, as it was seen. due: of a paused job the end of its pause.
-- REPLY   ok now jobs:[job]... | closed | stale_generation generation
-- COST    6 calls a job
--include guard
--include now_ms
--include key
--include text
--include partition_of
--include due_set
--include check_types
--include codes
local refusal = guard(a_generation)
if refusal then return refusal end
check_types({'heads', 'pauses'}, {})
local back = {}
for i = group_at, #ARGV, group_width do redis.call('ZCARD', key('due', partition_of(ARGV[i]), 0)) end
for i = group_at, #ARGV, group_width do
  local job, seen, due = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local partition = partition_of(job)
  local value = redis.call('HGET', key('jobs', partition, 0), job) or ''
  local paused = string.sub(seen, 1, 4) == '1|' .. JOB_STATE.PAUSED .. '|'
  local set = paused and key('pauses') or key('due', partition, 0)
  if string.match(value, '^([^\n]*)\n') == seen and not redis.call('ZSCORE', set, job) then
    if paused then redis.call('ZADD', set, due, job) else due_set(partition, job, due) end
    back[#back + 1] = job
  end
end
return {'ok', text(now_ms()), back}
