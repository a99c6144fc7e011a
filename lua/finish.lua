-- Ends attempts: the run succeeds, waits for its retry, dies or is cancelled, if the fence is still the run's own.
-- A repeat of the same request number is answered `already` for all.
-- MOVES   RUNNING -> SUCCEEDED, RUNNING -> RETRYING, RUNNING -> DEAD, RUNNING -> CANCELLED
-- KEYS    shard runs leases retries jobs body due finishes journal signals
-- ARGV    generation:text worker:text request:text items:[run:text fence:text outcome:text delay_ms:int started_at:text error:text]
--         outcome: S, T (retry after delay_ms), D or C.
-- REPLY   ok now tags:[tag]... (ok, already, stale_fence, missing) | closed | reopened generation
-- COST    variadic over the runs; 3 calls more for the last run of a job
-- FLAGS   allow-oom
--include guard
--include now_ms
--include journal
--include run_parse
--include run_pack
--include complete
--include complete_write
--include fetch_all
--include signal_due
--include variadic
--include typed
local refusal, marker = guard(a_generation)
if refusal then return refusal end
typed({'leases', 'retries'}, {})
local now = now_ms()
local at = text(now)
local tags, events, records, gone, ended, retries, last, runs, earliest = {}, {}, {}, {}, {}, {}, {}, {}, nil
for i = group_at, #ARGV, group_width do runs[#runs + 1] = ARGV[i] end
local repeated = redis.call('HGET', key('finishes'), a_worker) == a_request
local values = fetch_all(key('runs'), runs)
local seen = {}
for n = 1, #runs do
  local i = group_at + (n - 1) * group_width
  local run, outcome = runs[n], ARGV[i + 2]
  local r = run_parse(values[n])
  if repeated then tags[n] = 'already'
  elseif not r then tags[n] = 'missing'
  elseif seen[run] or r.state ~= 'R' or r.fence ~= ARGV[i + 1] then tags[n] = 'stale_fence'
  else
    tags[n] = 'ok'
    seen[run] = true
    r.rev, r.started = r.rev + 1, ARGV[i + 4] ~= '0' and ARGV[i + 4] or r.started
    if outcome == 'T' and string.find(r.flags, 'X', 1, true) then outcome = 'C' end
    r.state = outcome
    ended[#ended + 1] = run
    local record = run_pack(r)
    events[#events + 1] = 'r'
    events[#events + 1] = run .. '\n' .. record .. '\n' .. at .. '\n' .. ARGV[i + 5]
    if outcome == 'T' then
      local due = text(now + tonumber(ARGV[i + 3]))
      r.due = due
      records[#records + 1] = run
      records[#records + 1] = run_pack(r)
      retries[#retries + 1] = due
      retries[#retries + 1] = run .. '|' .. r.lane
      if not earliest or tonumber(due) < tonumber(earliest) then earliest = due end
    else
      gone[#gone + 1] = run
      if string.find(r.flags, 'L', 1, true) then last[#last + 1] = {string.sub(run, 1, 15), r.sv} end
    end
  end
end
local done = complete(last, events)
journal('journal', marker.generation, events)
variadic('HSET', key('runs'), records, 2)
variadic('HDEL', key('runs'), gone, 1)
variadic('ZREM', key('leases'), ended, 1)
variadic('ZADD', key('retries'), retries, 2)
complete_write(done)
redis.call('HSET', key('finishes'), a_worker, a_request)
if earliest then signal_due(earliest) end
return {'ok', at, tags}
