-- Hands runs to a worker under a lease and a new fence, teams in fair order, by priority within a team with a floor for
-- the lower ones. A repeat of the same request number gives the same runs again.
-- MOVES   QUEUED -> RUNNING, RETRYING -> RUNNING, QUEUED -> SKIPPED, RETRYING -> SKIPPED, QUEUED -> CANCELLED, RETRYING ->
--         CANCELLED
-- KEYS    shard active payloads staged signals ready virtual q runs jobs body due leases fence workers starts requests retries
--         journal quarantine restore
-- ARGV    generation:text worker:text request:text slots:int lease_ms:int visits:int queues:[queue:text]
--         visits: how many turns of teams it may take in all, for what it costs.
-- REPLY   ok now lease_end more runs:[run attempt fence due_at flags value payload]... | full now | closed | stale_generation
--         generation
-- COST    1 HGET a run; 5 calls a queue_key; variadic otherwise
--include guard
--include now_ms
--include key
--include text
--include check_types
--include fetch_repeat
--include fetch_read
--include fair_shares
--include fetch_take
--include fetch_plan
--include complete
--include fetch_write
--include fetch_write_queues
--include event_worker
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'leases', 'staged', 'retries'}, {'quarantine', 'workers', 'starts'})
local now = now_ms()
local at, lease_end = text(now), text(now + a_lease_ms)
if marker.load_level >= 2 then return {'full', at} end
local repeated = fetch_repeat(a_worker, a_request, lease_end)
if repeated then return {'ok', at, lease_end, '0', repeated} end
local plan = {
  now = now, at = at, again = text(now + 1000), lease_end = lease_end,
  worker = a_worker, fence = tonumber(redis.call('GET', key('fence')) or '0'),
  picks = {}, drains = {}, charged = {}, done = {}, clocks = {}, swept = false,
  events = {}, records = {}, leases = {}, given = {}, gone = {}, last = {}, unreadable = {}, staged = {}, retries = {},
  starts = {}, replies = {}, freed = {}, payloads = {},
}
local slots, visits, queues = a_slots, a_visits, {}
for i = group_at, #ARGV do queues[#queues + 1] = ARGV[i] end
for n = 1, #queues do
  -- Another queue first each time, so that one with endless work does not starve the others.
  local queue, clock = queues[(n + tonumber(a_request)) % #queues + 1], 0
  local teams = fetch_read(queue, slots > 0 and math.min(slots, visits))
  slots, visits, clock = fair_shares(teams, slots, visits)
  fetch_take(plan, queue, teams, clock)
end
fetch_plan(plan)
if redis.call('HEXISTS', key('workers'), a_worker) == 0 then
  event_worker(plan.events, a_worker, table.concat(queues, ','), at)
end
local completed = complete(plan.last, plan.events)
fetch_write(plan, marker.generation, completed)
fetch_write_queues(plan)
redis.call('HSET', key('workers'), a_worker, at .. '|' .. table.concat(queues, ',') .. '|' .. text(a_lease_ms))
redis.call('HSET', key('requests'), a_worker, a_request .. (#plan.given > 0 and ' ' or '') .. table.concat(plan.given, ' '))
local more = (#plan.picks > 0 and slots == 0) or #plan.picks > #plan.given or plan.swept
return {'ok', at, lease_end, more and '1' or '0', plan.replies}
