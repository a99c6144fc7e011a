-- Brings every run that waits back to staged or retries and drops its queue stream, one page of runs a call: a stream
-- may have lost entries, the records have not.
-- MOVES
-- KEYS    shard active runs staged retries leases q ready quarantine
-- ARGV    generation:text cursor:text count:int lease_ms:int
-- REPLY   ok now cursor staged | closed
-- COST    4 calls a run
--include key
--include text
--include recovery_guard
--include now_ms
--include run_parse
--include split_queue_key
--include check_types
--include staged_member
local refusal = recovery_guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'retries', 'leases'}, {'quarantine'})
local now = now_ms()
local page = redis.call('HSCAN', key('runs'), a_cursor, 'COUNT', a_count)
local count = 0
for i = 1, #page[2], 2 do
  local run, r = page[2][i], run_parse(page[2][i + 1])
  if not r or not split_queue_key(r.queue_key) then
    redis.call('HSET', key('quarantine'), run, page[2][i + 1])
    redis.call('HDEL', key('runs'), run)
    redis.call('ZREM', key('active', string.sub(run, 1, 15)), run)
  elseif r.state == 'R' then
    if string.find(r.flags, '%l') then redis.call('ZADD', key('active', string.sub(run, 1, 15)), '0', run) end
    if not redis.call('ZSCORE', key('leases'), run) then
      redis.call('ZADD', key('leases'), text(now + a_lease_ms), run)
    end
  else
    local queue = split_queue_key(r.queue_key)
    redis.call('DEL', key('q', r.queue_key))
    redis.call('DEL', key('ready', queue))
    local set, member = key('retries'), run .. '|' .. r.queue_key
    if r.state == 'Q' then
      -- Judged again at its release, where the job's runs must not overlap.
      set, member = key('staged'), staged_member(run, r.queue_key, r.flags)
    elseif string.find(r.flags, '%l') then
      redis.call('ZADD', key('active', string.sub(run, 1, 15)), '0', run)
    end
    if not redis.call('ZSCORE', set, member) then
      redis.call('ZADD', set, r.due, member)
      count = count + 1
    end
  end
end
return {'ok', text(now), page[1], text(count)}
