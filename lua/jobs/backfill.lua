-- Owes the occurrences of past ranges, which are paid out like a catch-up.
-- MOVES
-- KEYS    shard jobs catchup definitions signals
-- ARGV    generation:text job:text schedule_version:int flags:text items:[from:int to:int delay_ms:int]
--         schedule_version: the schedule version that the ranges were computed from. Both ends are occurrences. delay_ms: when its turn comes,
--         so that the many ranges of one job do not stand in the way of other jobs'.
-- REPLY   ok now journal_id | missing now | conflict now | inactive now | closed | stale_generation generation
-- COST    4 calls
--include guard
--include now_ms
--include journal
--include head_parse
--include partition_of
--include catchup_event
--include variadic
--include check_types
--include signal_due
--include text
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'catchup'}, {})
local now = now_ms()
local at = text(now)
local head = head_parse(redis.call('HGET', key('jobs', partition_of(a_job), 0), a_job))
if not head or head.state == 'd' then return {'missing', at} end
if head.state ~= 'a' then return {'inactive', at} end
if head.schedule_version ~= a_schedule_version then return {'conflict', at} end
local events, ranges = {}, {}
for i = group_at, #ARGV, group_width do
  local member = table.concat({a_job, ARGV[i], ARGV[i + 1], text(head.schedule_version), a_flags, at}, '|')
  catchup_event(events, member, at)
  ranges[#ranges + 1] = text(now + tonumber(ARGV[i + 2]))
  ranges[#ranges + 1] = member
end
local id = journal('definitions', marker.generation, events)
variadic('ZADD', key('catchup'), ranges, 2)
signal_due(at)
return {'ok', at, id}
