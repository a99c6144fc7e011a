-- Ends attempts whose lease ended without a word from their worker: the attempt counts, the run is retried or dies.
-- A lease without a run is dropped.
-- MOVES   RUNNING -> RETRYING, RUNNING -> DEAD, RUNNING -> CANCELLED
-- KEYS    shard active staged payloads unconfirmed runs leases retries jobs body due journal signals restore
-- ARGV    generation:text after_ms:int items:[run:text fence:text outcome:text delay_ms:int]
--         outcome: T (retry after delay_ms), D, or N: no definition was seen that tells; without one it dies.
--         later: its definition is still being restored, and its lease is a second longer; or it is there by now, and tells.
-- REPLY   ok now tags:[tag]... (ok, later, stale_fence, missing) | closed | stale_generation generation
-- COST    2 calls a run, 1 more for an item N; variadic otherwise
-- FLAGS   allow-oom
--include guard
--include now_ms
--include run_parse
--include in_recovery_grace
--include check_types
--include end_write
--include end_attempt
--include partition_of
--include variadic
--include restore_in_progress
--include codes
--include job_of
--include key
--include text
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'retries'}, {})
local now = now_ms()
local at = text(now)
local out = {events = {}, records = {}, retries = {}, ended = {}, gone = {}, last = {},
  freed = {}, payloads = {}}
local tags, later = {}, {}
local function defined(run)
  local partition = partition_of(run)
  return partition and redis.call('HEXISTS', key('jobs', partition, 0), job_of(run)) == 1
end
local in_grace = in_recovery_grace(marker, now)
for i = group_at, #ARGV, group_width do
  local run, outcome = ARGV[i], ARGV[i + 2]
  local record = run_parse(redis.call('HGET', key('runs'), run))
  local score = tonumber(redis.call('ZSCORE', key('leases'), run) or 'inf')
  if in_grace or score > now - a_after_ms then tags[#tags + 1] = 'stale_fence'
  elseif not record or record.state ~= STATE.RUNNING then
    tags[#tags + 1] = 'missing'
    out.ended[#out.ended + 1] = run
  elseif record.fence ~= ARGV[i + 1] then tags[#tags + 1] = 'stale_fence'
  elseif outcome == 'N' and defined(run) then tags[#tags + 1] = 'later'
  elseif outcome == 'N' and restore_in_progress() then
    tags[#tags + 1] = 'later'
    later[#later + 1] = text(now + 1000)
    later[#later + 1] = run
  else
    tags[#tags + 1] = 'ok'
    local detail = 'the lease ended: worker ' .. record.worker .. ' was lost'
    end_attempt(out, run, record, outcome == STATE.RETRYING and outcome or STATE.DEAD, now, tonumber(ARGV[i + 3]), detail)
  end
end
end_write(out, marker.generation, now)
variadic('ZADD', key('leases'), later, 2)
return {'ok', at, tags}
