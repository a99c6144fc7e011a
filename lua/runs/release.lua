-- Moves what has come due from staged and retries to the queue streams, never early; each set has its own budget, so
-- that neither starves the other. Of a job whose runs must not overlap, its policy decides here by the job's active runs; while
-- an unconfirmed worker that nobody knows may have one of those, none goes: they are put off to the end of the recovery grace
-- period.
-- MOVES   QUEUED -> SKIPPED, RETRYING -> CANCELLED
-- KEYS    shard unconfirmed staged retries q ready virtual runs active payloads jobs body due journal quarantine signals
-- ARGV    generation:text limit:int
-- REPLY   ok now released more next_at | closed | stale_generation generation
-- COST    1 XADD a run; 5 calls a queue_key; variadic otherwise; 2 calls a run and 2 a job more where an overlap policy decides;
--         in the recovery grace period 1 lookup of the retries
-- FLAGS   allow-oom
--include guard
--include now_ms
--include enqueue
--include in_recovery_grace
--include signal_due
--include journal
--include run_parse
--include overlap_decide
--include overlap_write
--include variadic
--include check_types
--include check_queue_types
--include codes
--include key
--include text
--include overlap_judged
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({}, {'quarantine'})
local now = now_ms()
local in_grace = in_recovery_grace(marker, now)
local from = in_grace and '(' .. text(marker.closed_at) or '-inf'
local unknown_workers = in_grace and redis.call('SISMEMBER', key('unconfirmed'), '') == 1
local sets, queue_keys, unreadable = {'staged', 'retries'}, {}, {}
local count, more, next_at = 0, 0, nil
local taken, put_off, judge = {staged = {}, retries = {}}, {staged = {}, retries = {}}, nil
for _, set in ipairs(sets) do
  local gone, later = taken[set], put_off[set]
  local members = redis.call('ZRANGE', key(set), from, text(now), 'BYSCORE', 'LIMIT', 0, a_limit)
  local judged = unknown_workers and overlap_judged(members, set) or {}
  for i = 1, #members do
    local run, queue_key, letter = string.match(members[i], '^([^|]+)|([^:|]+:[^:|]+:[^:|]+)|?(%l?)$')
    if run and judged[i] then
      later[#later + 1] = text(marker.recovery_grace_until)
      later[#later + 1] = members[i]
    else
      local goes = true
      gone[#gone + 1] = members[i]
      if run and letter ~= '' then
        if not judge then
          check_types({'staged', 'retries'}, {'runs', 'payloads'})
          judge = {jobs = {}, skipped = {}, cancelled = {}}
        end
        local record = run_parse(redis.call('HGET', key('runs'), run))
        goes = record and record.state == STATE.QUEUED and overlap_decide(judge, run, record, letter) == 'go'
      end
      if not run then
        unreadable[#unreadable + 1] = members[i]
        unreadable[#unreadable + 1] = 'no queue_key in ' .. set
      elseif goes then
        local list = queue_keys[queue_key]
        if not list then list = {} queue_keys[queue_key] = list end
        list[#list + 1] = run
        count = count + 1
      end
    end
  end
  if #members == a_limit then more = 1 end
  if #later > 0 and (not next_at or marker.recovery_grace_until < next_at) then next_at = marker.recovery_grace_until end
  local following = redis.call('ZRANGE', key(set), '(' .. text(now), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  if following[2] and (not next_at or tonumber(following[2]) < next_at) then next_at = tonumber(following[2]) end
end
check_queue_types(queue_keys)
local events, write_judged = {}, nil
if judge then write_judged = overlap_write(judge, events, now) end
journal('journal', marker.generation, events)
-- Streams first: were anything to fail between, a run would be queued twice, which fetch sorts out, and never lost.
enqueue(queue_keys)
variadic('HSET', key('quarantine'), unreadable, 2)
for _, set in ipairs(sets) do
  variadic('ZREM', key(set), taken[set], 1)
  variadic('ZADD', key(set), put_off[set], 2)
end
if #put_off.staged + #put_off.retries > 0 then signal_due(text(marker.recovery_grace_until)) end
if write_judged then write_judged() end
return {'ok', text(now), text(count), text(more), next_at and text(next_at) or ''}
