-- Drops from a page of what is kept for repeats and for workers that which belongs to nothing any more: payloads without run,
-- triggers past a day, requests and finishes of no worker, workers that fell silent, unconfirmed workers after the recovery
-- grace period.
-- MOVES
-- KEYS    shard payloads triggers requests finishes workers unconfirmed runs
-- ARGV    generation:text set:text cursor:text count:int silent_ms:int write:int
--         set: one of KEYS from payloads to unconfirmed. write 0: only finds.
-- REPLY   ok now cursor found:[kind entry]... | closed | stale_generation generation
-- COST    2 calls a page and 1 an entry
--include guard
--include now_ms
--include key
--include text
--include in_recovery_grace
--include variadic
--include check_types
--include codes
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'triggers'}, {'payloads', 'requests', 'finishes', 'workers', 'runs'})
local now = now_ms()
local scan, drop, width = 'HSCAN', 'HDEL', 2
if a_set == 'triggers' then scan, drop = 'ZSCAN', 'ZREM'
elseif a_set == 'unconfirmed' then scan, drop, width = 'SSCAN', 'SREM', 1 end
local page = redis.call(scan, key(a_set), a_cursor, 'COUNT', a_count)
local kinds = {payloads = 'payload_without_run', triggers = 'trigger_past_a_day', requests = 'request_of_no_worker',
  finishes = 'finish_of_no_worker', workers = 'worker_silent', unconfirmed = 'unconfirmed_of_no_worker'}
local found, gone = {}, {}
local in_grace = in_recovery_grace(marker, now)
for i = 1, #page[2], width do
  local entry, value, drops = page[2][i], page[2][i + 1], false
  if a_set == 'payloads' then drops = redis.call('HEXISTS', key('runs'), entry) == 0
  elseif a_set == 'triggers' then drops = tonumber(value) < now - TRIGGER.KEYED_FOR_MS
  elseif a_set == 'workers' then
    local seen, lease = string.match(value, '^(%d+)|.-(%d*)$')
    drops = not in_grace and (not seen or tonumber(seen) < now - math.max(a_silent_ms, 2 * (tonumber(lease) or 0)))
  elseif not in_grace then
    -- '' stands for workers that nobody knew, until the next recovery.
    drops = entry ~= '' and redis.call('HEXISTS', key('workers'), entry) == 0
  end
  if drops then
    found[#found + 1] = kinds[a_set]
    found[#found + 1] = entry
    gone[#gone + 1] = entry
  end
end
if a_write == 1 then
  variadic(drop, key(a_set), gone, 1)
  if a_set == 'workers' then
    variadic('HDEL', key('requests'), gone, 1)
    variadic('HDEL', key('finishes'), gone, 1)
    variadic('SREM', key('unconfirmed'), gone, 1)
  end
end
return {'ok', text(now), page[1], found}
