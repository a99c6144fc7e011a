-- Writes back definitions that the ledger has in a later version than Redis, with their due times; no journal, since the
-- ledger is where they come from.
-- MOVES
-- KEYS    shard jobs body due heads signals
-- ARGV    generation:text items:[job:text due:text value:text]
-- REPLY   ok now count | closed
-- COST    6 calls a job
--include key
--include text
--include recovering
--include now_ms
--include head_parse
--include partition_of
--include job_write
--include due_set
--include typed_job
--include typed
local refusal = recovering(a_generation, true)
if refusal then return refusal end
typed({'heads'}, {})
for i = group_at, #ARGV, group_width do typed_job(partition_of(ARGV[i])) end
local rank = {a = 0, p = 0, i = 1, c = 1, d = 2}
local count = 0
for i = group_at, #ARGV, group_width do
  local job, due, value = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local p = partition_of(job)
  local old, new = head_parse(redis.call('HGET', key('jobs', p, 0), job)), head_parse(value)
  if new and (not old or old.version < new.version
      or (old.version == new.version and rank[old.state] < rank[new.state])) then
    job_write(p, job, value)
    due_set(p, job, due)
    count = count + 1
  end
end
return {'ok', text(now_ms()), text(count)}
