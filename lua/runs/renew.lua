-- Extends the leases of a worker's attempts, each only while it has not ended and its fence is the run's own.
-- MOVES
-- KEYS    shard runs leases workers
-- ARGV    generation:text worker:text lease_ms:int items:[run:text fence:text]
-- REPLY   ok now lease_end tags:[tag]... (ok, cancel, stale_fence, missing) | closed | stale_generation generation
-- COST    1 call a run; variadic otherwise
-- FLAGS   allow-oom
--include guard
--include now_ms
--include key
--include text
--include run_parse
--include fetch_all
--include variadic
--include check_types
--include codes
local refusal = guard(a_generation)
if refusal then return refusal end
check_types({'leases'}, {'workers'})
local now = now_ms()
local lease_end = text(now + a_lease_ms)
local tags, leases, runs = {}, {}, {}
for i = group_at, #ARGV, group_width do runs[#runs + 1] = ARGV[i] end
local values = fetch_all(key('runs'), runs)
for n = 1, #runs do
  local record = run_parse(values[n])
  local score = record and redis.call('ZSCORE', key('leases'), runs[n])
  if not record then tags[n] = 'missing'
  elseif record.state ~= STATE.RUNNING or record.fence ~= ARGV[group_at + (n - 1) * group_width + 1]
      or not score or tonumber(score) <= now then
    tags[n] = 'stale_fence'
  else
    tags[n] = string.find(record.flags, FLAG.CANCEL, 1, true) and 'cancel' or 'ok'
    leases[#leases + 1] = lease_end
    leases[#leases + 1] = runs[n]
  end
end
variadic('ZADD', key('leases'), leases, 2)
local seen = redis.call('HGET', key('workers'), a_worker)
if seen then redis.call('HSET', key('workers'), a_worker, text(now) .. (string.match(seen, '|.*$') or '|')) end
return {'ok', text(now), lease_end, tags}
