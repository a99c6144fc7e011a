-- Ends attempts whose lease ended without a word from their worker: the attempt counts, the run is retried or dies.
-- A lease without a run is dropped.
-- MOVES   RUNNING -> RETRYING, RUNNING -> DEAD, RUNNING -> CANCELLED
-- KEYS    shard holders runs leases retries jobs body due journal signals
-- ARGV    generation:text after_ms:int items:[run:text fence:text outcome:text delay_ms:int]
--         outcome: T (retry after delay_ms) or D.
-- REPLY   ok now tags:[tag]... (ok, stale_fence, missing) | closed | reopened generation
-- COST    2 calls a run; variadic otherwise
-- FLAGS   allow-oom
--include guard
--include now_ms
--include journal
--include run_parse
--include run_pack
--include complete
--include complete_write
--include held
--include signal_due
--include variadic
--include typed
local refusal, marker = guard(a_generation)
if refusal then return refusal end
typed({'retries'}, {})
local now = now_ms()
local at = text(now)
local tags, events, records, gone, ended, retries, last, earliest = {}, {}, {}, {}, {}, {}, {}, nil
local holding = held(marker, now)
for i = group_at, #ARGV, group_width do
  local run = ARGV[i]
  local r = run_parse(redis.call('HGET', key('runs'), run))
  local score = tonumber(redis.call('ZSCORE', key('leases'), run) or 'inf')
  if holding or score > now - a_after_ms then tags[#tags + 1] = 'stale_fence'
  elseif not r or r.state ~= 'R' then
    tags[#tags + 1] = 'missing'
    ended[#ended + 1] = run
  elseif r.fence ~= ARGV[i + 1] then tags[#tags + 1] = 'stale_fence'
  else
    tags[#tags + 1] = 'ok'
    r.rev, r.state = r.rev + 1, ARGV[i + 2]
    if string.find(r.flags, 'X', 1, true) then r.state = 'C' end
    ended[#ended + 1] = run
    events[#events + 1] = 'r'
    events[#events + 1] = run .. '\n' .. run_pack(r) .. '\n' .. at .. '\nthe lease ended: worker ' .. r.worker .. ' was lost'
    if r.state == 'T' then
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
if earliest then signal_due(earliest) end
return {'ok', at, tags}
