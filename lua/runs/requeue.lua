-- Puts runs that were fetched and not started back into their queues, at once and without using up an attempt.
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
--include codes
--include event_run
--include key
--include text
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'leases'}, {})
local at = text(now_ms())
local tags, events, records, ended, queue_keys, seen = {}, {}, {}, {}, {}, {}
for i = group_at, #ARGV, group_width do
  local run = ARGV[i]
  local record = run_parse(redis.call('HGET', key('runs'), run))
  if not record then tags[#tags + 1] = 'missing'
  elseif seen[run] or record.state ~= STATE.RUNNING or record.fence ~= ARGV[i + 1] then tags[#tags + 1] = 'stale_fence'
  else
    tags[#tags + 1] = 'ok'
    seen[run] = true
    record.revision, record.attempt = record.revision + 1, math.max(record.attempt - 1, 0)
    record.state, record.worker = record.attempt > 0 and STATE.RETRYING or STATE.QUEUED, ''
    local packed = run_pack(record)
    event_run(events, run, packed, at, 'given back')
    records[#records + 1] = run
    records[#records + 1] = packed
    ended[#ended + 1] = run
    queue_keys[record.queue_key] = queue_keys[record.queue_key] or {}
    table.insert(queue_keys[record.queue_key], run)
  end
end
check_queue_types(queue_keys)
journal('journal', marker.generation, events)
variadic('HSET', key('runs'), records, 2)
variadic('ZREM', key('leases'), ended, 1)
enqueue(queue_keys)
return {'ok', at, tags}
