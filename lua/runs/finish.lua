-- Ends attempts: the run succeeds, waits for its retry, dies or is cancelled, if the fence is still the run's own.
-- A repeat of the same request number is answered `already` for all.
-- MOVES   RUNNING -> SUCCEEDED, RUNNING -> RETRYING, RUNNING -> DEAD, RUNNING -> CANCELLED
-- KEYS    shard active staged payloads runs leases retries jobs body due finishes journal signals
-- ARGV    generation:text worker:text request:text items:[run:text fence:text outcome:text delay_ms:int started_at:text
--         error:text]
--         outcome: S, T (retry after delay_ms), D or C.
-- REPLY   ok now tags:[tag]... (ok, already, stale_fence, missing) | closed | stale_generation generation
-- COST    variadic over the runs; 3 calls more for the last run of a job
-- FLAGS   allow-oom
--include guard
--include now_ms
--include run_parse
--include fetch_all
--include check_types
--include end_write
--include end_attempt
--include codes
--include key
--include text
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'leases', 'retries'}, {})
local now = now_ms()
local at = text(now)
local out = {events = {}, records = {}, retries = {}, ended = {}, gone = {}, last = {},
  freed = {}, payloads = {}}
local tags, runs, seen = {}, {}, {}
for i = group_at, #ARGV, group_width do runs[#runs + 1] = ARGV[i] end
local repeated = redis.call('HGET', key('finishes'), a_worker) == a_request
local values = fetch_all(key('runs'), runs)
for n = 1, #runs do
  local i = group_at + (n - 1) * group_width
  local run = runs[n]
  local record = run_parse(values[n])
  if repeated then tags[n] = 'already'
  elseif not record then tags[n] = 'missing'
  elseif seen[run] or record.state ~= STATE.RUNNING or record.fence ~= ARGV[i + 1] then tags[n] = 'stale_fence'
  else
    tags[n] = 'ok'
    seen[run] = true
    if ARGV[i + 4] ~= '0' then record.started_at = ARGV[i + 4] end
    end_attempt(out, run, record, ARGV[i + 2], now, tonumber(ARGV[i + 3]), ARGV[i + 5])
  end
end
end_write(out, marker.generation, now)
redis.call('HSET', key('finishes'), a_worker, a_request)
return {'ok', at, tags}
