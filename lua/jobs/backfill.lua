-- Makes catch-up ranges of past occurrences, whose runs are enqueued little by little.
-- MOVES
-- KEYS    shard jobs catchup definitions signals
-- ARGV    generation:text job:text schedule_version:int flags:text items:[from:int to:int delay_ms:int]
--         schedule_version: the one that the ranges were computed from. Both ends are occurrences. delay_ms: when its turn
--         comes, so that the many ranges of one job do not stand in the way of other jobs'.
-- REPLY   ok now journal_id | missing now | conflict now | inactive now | closed | stale_generation generation
-- COST    4 calls
--include guard
--include now_ms
--include journal
--include head_parse
--include partition_of
--include variadic
--include check_types
--include signal_due
--include text
--include codes
--include event_catchup
--include key
--include range_pack
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'catchup'}, {})
local now = now_ms()
local at = text(now)
local head = head_parse(redis.call('HGET', key('jobs', partition_of(a_job), 0), a_job))
if not head or head.state == JOB_STATE.DELETED then return {'missing', at} end
if head.state ~= JOB_STATE.ACTIVE then return {'inactive', at} end
if head.schedule_version ~= a_schedule_version then return {'conflict', at} end
local events, ranges = {}, {}
for i = group_at, #ARGV, group_width do
  local range = {job = a_job, from = ARGV[i], to = ARGV[i + 1], schedule_version = text(head.schedule_version), flags = a_flags,
    made_at = at}
  event_catchup(events, range, at)
  ranges[#ranges + 1] = text(now + tonumber(ARGV[i + 2]))
  ranges[#ranges + 1] = range_pack(range)
end
local id = journal('definitions', marker.generation, events)
variadic('ZADD', key('catchup'), ranges, 2)
signal_due(at)
return {'ok', at, id}
