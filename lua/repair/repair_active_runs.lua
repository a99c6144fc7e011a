-- Drops runs without a record from a page of a job's set of active runs, and releases the next one where none is active.
-- MOVES
-- KEYS    shard active runs staged signals
-- ARGV    generation:text job:text cursor:text count:int write:int
--         write 0: only finds.
-- REPLY   ok now cursor found:[kind run]... | closed | stale_generation generation
-- COST    4 calls a page
--include guard
--include now_ms
--include key
--include text
--include run_parse
--include staged_member
--include fetch_all
--include signal_due
--include variadic
--include check_types
--include codes
local refusal = guard(a_generation)
if refusal then return refusal end
check_types({'staged'}, {'runs'})
local now = text(now_ms())
local active = key('active', a_job)
local page = redis.call('ZSCAN', active, a_cursor, 'COUNT', a_count)
local runs, found, gone = {}, {}, {}
for i = 1, #page[2], 2 do runs[#runs + 1] = page[2][i] end
local values = fetch_all(key('runs'), runs)
for i = 1, #runs do
  if not values[i] then
    found[#found + 1] = 'active_without_run'
    found[#found + 1] = runs[i]
    gone[#gone + 1] = runs[i]
  end
end
if a_write == 1 and #gone > 0 then
  variadic('ZREM', active, gone, 1)
  local first = redis.call('ZRANGE', active, 0, 0, 'WITHSCORES')
  local record = first[1] and first[2] ~= '0' and run_parse(redis.call('HGET', key('runs'), first[1]))
  if record and record.state == STATE.QUEUED then
    redis.call('ZADD', key('staged'), 'NX', now, staged_member(first[1], record.queue_key, record.flags))
    signal_due(now)
  end
end
return {'ok', now, page[1], found}
