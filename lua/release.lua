-- Moves what has come due from staged and retries to the queue streams, never early; each set has its own budget, so
-- that neither starves the other. Of a job whose runs must not overlap, its policy decides here by the job's open runs.
-- MOVES   QUEUED -> SKIPPED, RETRYING -> CANCELLED
-- KEYS    shard holders staged retries q ready virtual runs open payloads jobs body due journal poison signals
-- ARGV    generation:text limit:int
-- REPLY   ok now released more next_at | closed | reopened generation
-- COST    1 XADD a run; 5 calls a lane; variadic otherwise; 2 calls a run and 2 a job more where an overlap policy decides
-- FLAGS   allow-oom
--include guard
--include now_ms
--include enqueue
--include held
--include journal
--include run_parse
--include overlap_judge
--include overlap_write
--include variadic
--include typed
--include typed_lanes
local refusal, marker = guard(a_generation)
if refusal then return refusal end
typed({}, {'poison'})
local now = now_ms()
local from = held(marker, now) and '(' .. text(marker.closed_at) or '-inf'
local sets, lanes, taken, bad, count, more, next_at = {'staged', 'retries'}, {}, {}, {}, 0, 0, nil
local judge = nil
for s = 1, 2 do
  local members = redis.call('ZRANGE', key(sets[s]), from, text(now), 'BYSCORE', 'LIMIT', 0, a_limit)
  for i = 1, #members do
    local run, lane, letter = string.match(members[i], '^([^|]+)|([^:|]+:[^:|]+:[^:|]+)|?(%l?)$')
    local goes = true
    if run and letter ~= '' then
      if not judge then
        typed({'staged', 'retries'}, {'runs', 'payloads'})
        judge = {jobs = {}, skipped = {}, cancelled = {}}
      end
      local r = run_parse(redis.call('HGET', key('runs'), run))
      goes = r and r.state == 'Q' and overlap_judge(judge, run, r, letter) == 'go'
    end
    if not run then
      bad[#bad + 1] = members[i]
      bad[#bad + 1] = 'no lane in ' .. sets[s]
    elseif goes then
      local list = lanes[lane]
      if not list then list = {} lanes[lane] = list end
      list[#list + 1] = run
      count = count + 1
    end
  end
  if #members == a_limit then more = 1 end
  taken[s] = members
  local following = redis.call('ZRANGE', key(sets[s]), '(' .. text(now), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  if following[2] and (not next_at or tonumber(following[2]) < next_at) then next_at = tonumber(following[2]) end
end
typed_lanes(lanes)
local events, settle = {}, nil
if judge then settle = overlap_write(judge, events, now) end
journal('journal', marker.generation, events)
-- Streams first: were anything to fail between, a run would be queued twice, which fetch settles, and never lost.
enqueue(lanes)
variadic('HSET', key('poison'), bad, 2)
for s = 1, 2 do variadic('ZREM', key(sets[s]), taken[s], 1) end
if settle then settle() end
return {'ok', text(now), text(count), text(more), next_at and text(next_at) or ''}
