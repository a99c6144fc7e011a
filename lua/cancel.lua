-- Cancels a run: at once if it has not started, else by asking its worker to stop it.
-- MOVES   QUEUED -> CANCELLED, RETRYING -> CANCELLED
-- KEYS    shard runs staged retries jobs body due definitions signals
-- ARGV    generation:text run:text
-- REPLY   ok now journal_id | cancelling now journal_id | missing now | closed | reopened generation
-- COST    8 calls
--include guard
--include now_ms
--include journal
--include run_parse
--include run_pack
--include complete
--include complete_write
--include typed
local refusal, marker = guard(a_generation)
if refusal then return refusal end
typed({'staged', 'retries'}, {})
local now = text(now_ms())
local r = run_parse(redis.call('HGET', key('runs'), a_run))
if not r then return {'missing', now} end
local member = a_run .. '|' .. r.lane
local last = string.find(r.flags, 'L', 1, true)
r.rev = r.rev + 1
if r.state == 'R' then
  if not string.find(r.flags, 'X', 1, true) then r.flags = r.flags .. 'X' end
  local record = run_pack(r)
  local id = journal('definitions', marker.generation, {'r', a_run .. '\n' .. record .. '\n' .. now .. '\n'})
  redis.call('HSET', key('runs'), a_run, record)
  redis.call('PUBLISH', key('signals'), 'cancel ' .. a_run)
  return {'cancelling', now, id}
end
r.state = 'C'
local events = {'r', a_run .. '\n' .. run_pack(r) .. '\n' .. now .. '\ncancelled before it started'}
local done = complete(last and {{string.sub(a_run, 1, 15), r.sv}} or {}, events)
local id = journal('definitions', marker.generation, events)
redis.call('HDEL', key('runs'), a_run)
redis.call('ZREM', key('staged'), member)
redis.call('ZREM', key('retries'), member)
complete_write(done)
return {'ok', now, id}
