-- Quarantines, on record, jobs that nobody can read and due entries without a job, which the ledger does not have either; each
-- only if it is still as the caller saw it.
-- MOVES
-- KEYS    shard due heads jobs body quarantine journal
-- ARGV    generation:text items:[partition:int job:text seen:text]
--         seen: the job's value, '' for none.
-- REPLY   ok now jobs:[job]... | closed | stale_generation generation
-- COST    6 calls a job
--include guard
--include now_ms
--include key
--include text
--include journal
--include head_parse
--include head_update
--include variadic
--include check_types
--include check_job_types
--include event_quarantine
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'heads'}, {'quarantine'})
local at = text(now_ms())
local events, unreadable, gone = {}, {}, {}
local taken = {}
for i = group_at, #ARGV, group_width do
  local partition, job, seen = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  check_job_types(partition)
  local value = redis.call('HGET', key('jobs', partition, 0), job) or ''
  if value == seen and not head_parse(value) then
    taken[#taken + 1] = {partition, job}
    gone[#gone + 1] = job
    unreadable[#unreadable + 1] = job
    unreadable[#unreadable + 1] = value ~= '' and value or 'due entry without definition'
    event_quarantine(events, 'due', job, value, at)
  end
end
journal('journal', marker.generation, events)
variadic('HSET', key('quarantine'), unreadable, 2)
for i = 1, #taken do
  local partition, job = taken[i][1], taken[i][2]
  redis.call('HDEL', key('jobs', partition, 0), job)
  redis.call('HDEL', key('body', partition), job)
  redis.call('ZREM', key('due', partition, 0), job)
  head_update(partition)
end
return {'ok', at, gone}
