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
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'retries'}, {})
local now = now_ms()
local at = text(now)
local out = {events = {}, records = {}, retries = {}, ended = {}, gone = {}, last = {},
  freed = {}, payloads = {}}
local tags, later = {}, {}
local function defined(run)
  local p = partition_of(run)
  return p and redis.call('HEXISTS', key('jobs', p, 0), string.sub(run, 1, 15)) == 1
end
local holding = in_recovery_grace(marker, now)
for i = group_at, #ARGV, group_width do
  local run = ARGV[i]
  local r = run_parse(redis.call('HGET', key('runs'), run))
  local score = tonumber(redis.call('ZSCORE', key('leases'), run) or 'inf')
  if holding or score > now - a_after_ms then tags[#tags + 1] = 'stale_fence'
  elseif not r or r.state ~= 'R' then
    tags[#tags + 1] = 'missing'
    out.ended[#out.ended + 1] = run
  elseif r.fence ~= ARGV[i + 1] then tags[#tags + 1] = 'stale_fence'
  elseif ARGV[i + 2] == 'N' and defined(run) then tags[#tags + 1] = 'later'
  elseif ARGV[i + 2] == 'N' and restore_in_progress() then
    tags[#tags + 1] = 'later'
    later[#later + 1] = text(now + 1000)
    later[#later + 1] = run
  else
    tags[#tags + 1] = 'ok'
    local detail = 'the lease ended: worker ' .. r.worker .. ' was lost'
    end_attempt(out, run, r, ARGV[i + 2] == 'T' and 'T' or 'D', now, tonumber(ARGV[i + 3]), detail)
  end
end
end_write(out, marker.generation, now)
variadic('ZADD', key('leases'), later, 2)
return {'ok', at, tags}
