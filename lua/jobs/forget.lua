-- Drops jobs that ended long ago from Redis: completed ones and tombstones, only in the version the ledger has.
-- MOVES
-- KEYS    shard jobs body
-- ARGV    generation:text items:[job:text version:int]
-- REPLY   ok now count | closed | stale_generation generation
-- COST    3 calls an item
--include guard
--include now_ms
--include key
--include head_parse
--include partition_of
--include text
--include codes
local refusal = guard(a_generation)
if refusal then return refusal end
local count = 0
for i = group_at, #ARGV, group_width do
  local job, version = ARGV[i], tonumber(ARGV[i + 1])
  local partition = partition_of(job)
  local head = head_parse(redis.call('HGET', key('jobs', partition, 0), job))
  if head and head.version == version and (head.state == JOB_STATE.COMPLETED or head.state == JOB_STATE.DELETED) then
    redis.call('HDEL', key('jobs', partition, 0), job)
    redis.call('HDEL', key('body', partition), job)
    count = count + 1
  end
end
return {'ok', text(now_ms()), text(count)}
