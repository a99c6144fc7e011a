-- Says how far a restoration is, while the shard is the one of its generation: whoever lost the shard says nothing about a later
-- one.
-- MOVES
-- KEYS    shard restore
-- ARGV    generation:text phase:text jobs_done:int jobs_total:int runs_done:int started_at:int
-- REPLY   ok now | closed
-- COST    4 calls
--include key
--include text
--include recovery_guard
--include now_ms
--include check_types
local refusal = recovery_guard(a_generation, true)
if refusal then return refusal end
check_types({}, {'restore'})
redis.call('HSET', key('restore'), 'generation', a_generation, 'phase', a_phase, 'jobs_done', text(a_jobs_done),
  'jobs_total', text(a_jobs_total), 'runs_done', text(a_runs_done), 'started_at', text(a_started_at))
return {'ok', text(now_ms())}
