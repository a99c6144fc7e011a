-- Moves what has come due from staged and retries to the queue streams, never early; each set has its own budget, so
-- that neither starves the other. Of a job whose runs must not overlap, its policy decides here by the job's open runs; while a
-- worker that nobody knows may have one of those, none goes: they are put off to the end of the hold.
-- MOVES   QUEUED -> SKIPPED, RETRYING -> CANCELLED
-- KEYS    shard unconfirmed staged retries q ready virtual runs active payloads jobs body due journal quarantine signals
-- ARGV    generation:text limit:int
-- REPLY   ok now released more next_at | closed | stale_generation generation
-- COST    1 XADD a run; 5 calls a queue_key; variadic otherwise; 2 calls a run and 2 a job more where an overlap policy decides;
--         while runs are held 1 lookup of the retries
-- FLAGS   allow-oom
--include guard
--include now_ms
--include enqueue
--include in_recovery_grace
--include fetch_all
--include signal_due
--include journal
--include run_parse
--include overlap_decide
--include overlap_write
--include variadic
--include check_types
--include check_queue_types
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({}, {'quarantine'})
local now = now_ms()
local holding = in_recovery_grace(marker, now)
local from = holding and '(' .. text(marker.closed_at) or '-inf'
local strangers = holding and redis.call('SISMEMBER', key('unconfirmed'), '') == 1
local sets, queue_keys, taken, bad, count, more, next_at = {'staged', 'retries'}, {}, {}, {}, 0, 0, nil
local put_off, judge = {{}, {}}, nil
-- By place: whether a policy decides about each; of a retry its record tells and not its entry.
local function policed(members, retries)
  local runs, found = {}, {}
  for i = 1, #members do
    runs[i] = string.match(members[i], '^[^|]*')
    local letter = string.match(members[i], '|(%l)$')
    found[i] = letter and letter ~= 'a'
  end
  local values = retries and fetch_all(key('runs'), runs) or {}
  for i = 1, #values do
    local r = run_parse(values[i])
    local letter = r and string.match(r.flags, '%l')
    found[i] = letter and letter ~= 'a'
  end
  return found
end
for s = 1, 2 do
  local members = redis.call('ZRANGE', key(sets[s]), from, text(now), 'BYSCORE', 'LIMIT', 0, a_limit)
  local later, gone = strangers and policed(members, s == 2) or {}, {}
  for i = 1, #members do
    local run, queue_key, letter = string.match(members[i], '^([^|]+)|([^:|]+:[^:|]+:[^:|]+)|?(%l?)$')
    if run and later[i] then
      put_off[s][#put_off[s] + 1] = text(marker.recovery_grace_until)
      put_off[s][#put_off[s] + 1] = members[i]
    else
      local goes = true
      gone[#gone + 1] = members[i]
      if run and letter ~= '' then
        if not judge then
          check_types({'staged', 'retries'}, {'runs', 'payloads'})
          judge = {jobs = {}, skipped = {}, cancelled = {}}
        end
        local r = run_parse(redis.call('HGET', key('runs'), run))
        goes = r and r.state == 'Q' and overlap_decide(judge, run, r, letter) == 'go'
      end
      if not run then
        bad[#bad + 1] = members[i]
        bad[#bad + 1] = 'no queue_key in ' .. sets[s]
      elseif goes then
        local list = queue_keys[queue_key]
        if not list then list = {} queue_keys[queue_key] = list end
        list[#list + 1] = run
        count = count + 1
      end
    end
  end
  if #members == a_limit then more = 1 end
  taken[s] = gone
  if #put_off[s] > 0 and (not next_at or marker.recovery_grace_until < next_at) then next_at = marker.recovery_grace_until end
  local following = redis.call('ZRANGE', key(sets[s]), '(' .. text(now), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  if following[2] and (not next_at or tonumber(following[2]) < next_at) then next_at = tonumber(following[2]) end
end
check_queue_types(queue_keys)
local events, settle = {}, nil
if judge then settle = overlap_write(judge, events, now) end
journal('journal', marker.generation, events)
-- Streams first: were anything to fail between, a run would be queued twice, which fetch settles, and never lost.
enqueue(queue_keys)
variadic('HSET', key('quarantine'), bad, 2)
for s = 1, 2 do
  variadic('ZREM', key(sets[s]), taken[s], 1)
  variadic('ZADD', key(sets[s]), put_off[s], 2)
end
if #put_off[1] + #put_off[2] > 0 then signal_due(text(marker.recovery_grace_until)) end
if settle then settle() end
return {'ok', text(now), text(count), text(more), next_at and text(next_at) or ''}
