-- Drops from a page of `pauses` the jobs that are not paused with an end, and sets those right that have another end.
-- MOVES
-- KEYS    shard pauses jobs
-- ARGV    generation:text cursor:text count:int write:int late_ms:int
--         write 0: only finds. late_ms: so much past its end, and past now, a pause may be looked at again.
-- REPLY   ok now cursor found:[kind job]... | closed | stale_generation generation
-- COST    2 calls a page and 1 an entry
--include guard
--include now_ms
--include key
--include text
--include head_parse
--include partition_of
--include variadic
--include check_types
--include codes
--include optional_parse
local refusal = guard(a_generation)
if refusal then return refusal end
check_types({'pauses'}, {})
local now = now_ms()
local page = redis.call('ZSCAN', key('pauses'), a_cursor, 'COUNT', a_count)
local found, gone, ends = {}, {}, {}
for i = 1, #page[2], 2 do
  local job, at = page[2][i], tonumber(page[2][i + 1])
  local partition = partition_of(job)
  local head = partition and head_parse(redis.call('HGET', key('jobs', partition, 0), job))
  local ending = head and head.state == JOB_STATE.PAUSED and string.match(optional_parse(head).paused_until, '^%d+$')
  -- One that could not be ended is put off.
  local put_off = ending and tonumber(ending) <= now and at > tonumber(ending) and at <= now + a_late_ms
  if not ending then gone[#gone + 1] = job
  elseif at ~= tonumber(ending) and not put_off then
    ends[#ends + 1] = ending
    ends[#ends + 1] = job
  end
  if not ending or ends[#ends] == job then
    found[#found + 1] = 'pause_wrong'
    found[#found + 1] = job
  end
end
if a_write == 1 then
  variadic('ZREM', key('pauses'), gone, 1)
  variadic('ZADD', key('pauses'), ends, 2)
end
return {'ok', text(now), page[1], found}
