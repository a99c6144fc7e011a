-- Makes active jobs due again that had no due time, each only if it is still as the caller saw it.
-- MOVES
-- KEYS    shard due heads jobs signals
-- ARGV    generation:text items:[job:text head:text due:text]
--         head: the job's value up to its newline, as it was seen.
-- REPLY   ok now jobs:[job]... | closed | reopened generation
-- COST    6 calls a job
--include guard
--include now_ms
--include key
--include text
--include partition_of
--include due_set
--include typed
local refusal = guard(a_generation)
if refusal then return refusal end
typed({'heads'}, {})
local back = {}
for i = group_at, #ARGV, group_width do redis.call('ZCARD', key('due', partition_of(ARGV[i]), 0)) end
for i = group_at, #ARGV, group_width do
  local job, seen, due = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local p = partition_of(job)
  local value = redis.call('HGET', key('jobs', p, 0), job) or ''
  if string.match(value, '^([^\n]*)\n') == seen and not redis.call('ZSCORE', key('due', p, 0), job) then
    due_set(p, job, due)
    back[#back + 1] = job
  end
end
return {'ok', text(now_ms()), back}
