-- Gives back runs that were fetched and not started, at once and without using up an attempt.
-- MOVES   RUNNING -> QUEUED, RUNNING -> RETRYING
-- KEYS    shard runs leases q ready virtual journal signals
-- ARGV    generation:text worker:text items:[run:text fence:text]
-- REPLY   ok now tags:[tag]... (ok, stale_fence, missing) | closed | stale_generation generation
-- COST    1 XADD a run; variadic otherwise
-- FLAGS   allow-oom
--include guard
--include now_ms
--include journal
--include run_parse
--include run_pack
--include enqueue
--include variadic
--include check_types
--include check_queue_types
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'leases'}, {})
local at = text(now_ms())
local tags, events, records, ended, queue_keys, seen = {}, {}, {}, {}, {}, {}
for i = group_at, #ARGV, group_width do
  local run = ARGV[i]
  local r = run_parse(redis.call('HGET', key('runs'), run))
  if not r then tags[#tags + 1] = 'missing'
  elseif seen[run] or r.state ~= 'R' or r.fence ~= ARGV[i + 1] then tags[#tags + 1] = 'stale_fence'
  else
    tags[#tags + 1] = 'ok'
    seen[run] = true
    r.revision, r.attempt = r.revision + 1, math.max(r.attempt - 1, 0)
    r.state, r.worker = r.attempt > 0 and 'T' or 'Q', ''
    local record = run_pack(r)
    events[#events + 1] = 'r'
    events[#events + 1] = run .. '\n' .. record .. '\n' .. at .. '\ngiven back'
    records[#records + 1] = run
    records[#records + 1] = record
    ended[#ended + 1] = run
    queue_keys[r.queue_key] = queue_keys[r.queue_key] or {}
    table.insert(queue_keys[r.queue_key], run)
  end
end
check_queue_types(queue_keys)
journal('journal', marker.generation, events)
variadic('HSET', key('runs'), records, 2)
variadic('ZREM', key('leases'), ended, 1)
enqueue(queue_keys)
return {'ok', at, tags}
