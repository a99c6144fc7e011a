-- Drops runs that have ended by the ledger, or that nobody can read; each only if Redis still has the record that was seen.
-- What waits for them to end goes on.
-- MOVES
-- KEYS    shard runs staged retries leases active payloads quarantine journal signals
-- ARGV    generation:text quarantine:int items:[run:text record:text]
--         quarantine 1: they cannot be read and are quarantined.
-- REPLY   ok now runs:[run]... | closed | stale_generation generation
-- COST    4 calls a run; variadic otherwise
--include guard
--include now_ms
--include key
--include text
--include journal
--include run_parse
--include staged_member
--include run_ended
--include run_ended_write
--include variadic
--include check_types
--include retry_member
--include event_quarantine
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'retries', 'leases'}, {'runs', 'payloads', 'quarantine'})
local now = now_ms()
local gone, events, unreadable, staged, retries = {}, {}, {}, {}, {}
local freed = {freed = {}, payloads = {}}
for i = group_at, #ARGV, group_width do
  local run, packed = ARGV[i], ARGV[i + 1]
  if redis.call('HGET', key('runs'), run) == packed then
    local record = run_parse(packed)
    gone[#gone + 1] = run
    if a_quarantine == 1 then
      unreadable[#unreadable + 1] = run
      unreadable[#unreadable + 1] = packed
      event_quarantine(events, 'run', run, packed, text(now))
    elseif record then
      run_ended(freed, run, record.flags)
      staged[#staged + 1] = staged_member(run, record.queue_key, record.flags)
      retries[#retries + 1] = retry_member(run, record.queue_key)
    end
  end
end
journal('journal', marker.generation, events)
variadic('HSET', key('quarantine'), unreadable, 2)
variadic('HDEL', key('runs'), gone, 1)
variadic('ZREM', key('leases'), gone, 1)
variadic('ZREM', key('staged'), staged, 1)
variadic('ZREM', key('retries'), retries, 1)
run_ended_write(freed, now)
return {'ok', text(now), gone}
