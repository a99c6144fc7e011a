-- The runs whose lease ended at least after_ms ago, with what deciding about them needs; none in the recovery grace period.
-- MOVES
-- KEYS    shard unconfirmed leases runs jobs body
-- ARGV    generation:text after_ms:int limit:int
-- REPLY   ok now more runs:[run record value]... | closed | stale_generation generation
-- COST    3 calls a run
-- FLAGS   allow-oom
--include guard
--include now_ms
--include text
--include in_recovery_grace
--include partition_of
--include job_whole
--include job_of
--include key
local refusal, marker = guard(a_generation)
if refusal then return refusal end
local now = now_ms()
if in_recovery_grace(marker, now) then return {'ok', text(now), '0', {}} end
local runs = redis.call('ZRANGE', key('leases'), '-inf', text(now - a_after_ms), 'BYSCORE', 'LIMIT', 0, a_limit)
local out = {}
for i = 1, #runs do
  local run = runs[i]
  local partition, job = partition_of(run), job_of(run)
  out[#out + 1] = run
  out[#out + 1] = redis.call('HGET', key('runs'), run) or ''
  out[#out + 1] = partition and job_whole(partition, job, redis.call('HGET', key('jobs', partition, 0), job)) or ''
end
return {'ok', text(now), #runs == a_limit and '1' or '0', out}
