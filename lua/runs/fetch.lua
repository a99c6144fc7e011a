-- Hands runs to a worker under a lease and a new fence, teams in fair order, by priority within a team with a floor for
-- the lower ones. A repeat of the same request number gives the same runs again.
-- MOVES   QUEUED -> RUNNING, RETRYING -> RUNNING, QUEUED -> SKIPPED, RETRYING -> SKIPPED, QUEUED -> CANCELLED, RETRYING -> CANCELLED
-- KEYS    shard active payloads staged signals ready virtual q runs jobs body due leases fence workers starts requests retries journal quarantine restore
-- ARGV    generation:text worker:text request:text slots:int lease_ms:int visits:int queues:[queue:text]
-- REPLY   ok now lease_end more runs:[run attempt fence due_at flags value payload]... | full now | closed | stale_generation generation
-- COST    1 HGET a run; 5 calls a queue_key; variadic otherwise
--include guard
--include now_ms
--include journal
--include run_parse
--include run_pack
--include job_whole
--include complete
--include complete_write
--include fetch_all
--include variadic
--include check_types
--include run_ended_write
--include run_ended
--include signal_due
--include staged_member
--include restore_in_progress
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'leases', 'staged', 'retries'}, {'quarantine', 'workers', 'starts'})
local now = now_ms()
local at, lease_end = text(now), text(now + a_lease_ms)
if marker.load_level >= 2 then return {'full', at} end
local replies = {}
local function give(run, r, whole)
  local n = #replies
  replies[n + 1], replies[n + 2], replies[n + 3] = run, text(r.attempt), r.fence
  replies[n + 4], replies[n + 5], replies[n + 6] = r.due, r.flags, whole
  replies[n + 7] = string.find(r.flags, 'P', 1, true) and redis.call('HGET', key('payloads'), run) or ''
end
local before = redis.call('HGET', key('requests'), a_worker)
if before and string.match(before, '^(%S+)') == a_request then
  for run in string.gmatch(before, ' (%S+)') do
    local r = run_parse(redis.call('HGET', key('runs'), run))
    if r and r.state == 'R' and r.worker == a_worker then
      local p, job = partition_of(run), string.sub(run, 1, 15)
      give(run, r, job_whole(p, job, redis.call('HGET', key('jobs', p, 0), job)))
      redis.call('ZADD', key('leases'), lease_end, run)
    end
  end
  return {'ok', at, lease_end, '0', replies}
end
-- Reads: which entries to take, and in what order teams pay for them.
local picks, drains, ready_set, ready_gone, clocks = {}, {}, {}, {}, {}
local left, visits, names, swept = a_slots, a_visits, {}, false
for i = group_at, #ARGV do names[#names + 1] = ARGV[i] end
for n = 1, #names do
  -- Another queue first each time, so that one with endless work does not starve the others.
  local queue = names[(n + tonumber(a_request)) % #names + 1]
  redis.call('ZCARD', key('virtual', queue)) -- raises before anything is written if it is of another type
  local teams = left > 0 and redis.call('ZRANGE', key('ready', queue), 0, math.min(left, visits) - 1, 'WITHSCORES') or {}
  local clock, times, stock = 0, {}, {}
  local order = {}
  for t = 1, #teams, 2 do
    order[#order + 1] = teams[t]
    times[teams[t]] = tonumber(teams[t + 1])
  end
  for _, team in ipairs(order) do
    local queue_keys, total = {}, 0
    for priority = 0, 2 do
      local size = redis.call('XLEN', key('q', queue .. ':' .. team .. ':' .. priority))
      queue_keys[priority] = {size, 0}
      total = total + size
    end
    stock[team] = {queue_keys, total, 0}
  end
  -- Virtual time in rounds: each team in turn is given an even quantum until slots or work run out.
  local active = #order
  while left > 0 and visits > 0 and active > 0 do
    local quantum = math.max(1, math.ceil(left / active))
    active = 0
    table.sort(order, function(x, y) return times[x] < times[y] or (times[x] == times[y] and x < y) end)
    for _, team in ipairs(order) do
      local s = stock[team]
      visits = visits - 1
      if left > 0 and visits >= 0 and s[2] > s[3] then
        local take = math.min(quantum, left, s[2] - s[3])
        local queue_keys = s[1]
        -- The floor: an eighth of what a team is given goes to its lower priorities first, single slots by turns.
        local floor = math.ceil(take / 8)
        if take < 8 then floor = (times[team] + take) % 8 < take and 1 or 0 end
        local parts = {[0] = 0, 0, 0}
        for _, step in ipairs({{2, queue_keys[1][1] > queue_keys[1][2] and math.ceil(floor / 2) or floor}, {1, math.floor(floor / 2) + (queue_keys[2][1] > queue_keys[2][2] and 0 or math.ceil(floor / 2))}}) do
          local priority, most = step[1], step[2]
          local n = math.min(most, queue_keys[priority][1] - queue_keys[priority][2], take)
          parts[priority] = n
        end
        local rest = take - parts[1] - parts[2]
        for priority = 0, 2 do
          local n = math.min(rest, queue_keys[priority][1] - queue_keys[priority][2] - parts[priority])
          parts[priority] = parts[priority] + n
          rest = rest - n
        end
        for priority = 0, 2 do queue_keys[priority][2] = queue_keys[priority][2] + parts[priority] end
        local got = take - rest
        s[3] = s[3] + got
        left = left - got
        clock = math.max(clock, times[team])
        times[team] = times[team] + got
        if s[2] > s[3] then active = active + 1 end
      end
    end
  end
  local idle = #order == redis.call('ZCARD', key('ready', queue))
  for _, team in ipairs(order) do
    local s = stock[team]
    idle = idle and s[2] == s[3]
    for priority = 0, 2 do
      local take = s[1][priority][2]
      if take > 0 then
        local stream = key('q', queue .. ':' .. team .. ':' .. priority)
        local entries = redis.call('XRANGE', stream, '-', '+', 'COUNT', take)
        for e = 1, #entries do picks[#picks + 1] = entries[e][2][2] end
        drains[#drains + 1] = {stream, entries[#entries][1], s[1][priority][1] == take, take}
      end
    end
    if s[2] == 0 then swept = true end
    if s[2] == s[3] then
      ready_gone[#ready_gone + 1] = {queue, team, text(times[team])}
    elseif s[3] > 0 then
      ready_set[#ready_set + 1] = {queue, team, text(times[team])}
    end
  end
  if idle then
    -- Nobody waits: what each team was given before counts no more.
    for _, team in ipairs(order) do clock = math.max(clock, times[team]) end
  end
  if clock > 0 then clocks[#clocks + 1] = {queue, text(clock)} end
end
-- Reads: what the picked runs have become meanwhile.
local events, records, gone, leases, last, bad, given, seen = {}, {}, {}, {}, {}, {}, {}, {}
local freed, starts = {freed = {}, payloads = {}}, {}
local later, again = {staged = {}, retries = {}}, text(now + 1000)
local fence = tonumber(redis.call('GET', key('fence')) or '0')
local fence_before = fence
local values = fetch_all(key('runs'), picks)
for i = 1, #picks do
  local run = picks[i]
  local r = run_parse(values[i])
  if values[i] and not r then
    bad[#bad + 1] = run
    bad[#bad + 1] = values[i]
    events[#events + 1] = 'x'
    events[#events + 1] = 'run\n' .. run .. '\n' .. at .. '\n' .. values[i]
    gone[#gone + 1] = run
    -- Whatever its policy was, those that wait for it must not wait for ever.
    run_ended(freed, run, 'w')
  elseif r and not seen[run] and (r.state == 'Q' or r.state == 'T') then
    seen[run] = true
    local p, job = partition_of(run), string.sub(run, 1, 15)
    local value = redis.call('HGET', key('jobs', p, 0), job)
    local head = head_parse(value)
    if not head and restore_in_progress() then
      -- Without its definition it can neither run nor be judged: it comes again, as it is.
      local set, member = later.retries, run .. '|' .. r.queue_key
      if r.state == 'Q' then set, member = later.staged, staged_member(run, r.queue_key, r.flags) end
      set[#set + 1] = again
      set[#set + 1] = member
    else
      local detail = ''
      r.revision = r.revision + 1
      if not head or head.state == 'd' then
        r.state, detail = 'C', head and 'the job was deleted' or 'the job has no definition'
      elseif string.find(r.flags, 'X', 1, true) then
        r.state, detail = 'C', 'cancelled before it started'
      elseif r.schedule_version < head.schedule_version and not string.find(r.flags, 'M', 1, true)
          and tonumber(string.match(run, ':(%d+)$') or '0') > head.schedule_changed_at then
        r.state, detail = 'K', head.state == 'p' and 'paused' or 'withdrawn by an edit'
      else
        fence = fence + 1
        r.state, r.attempt, r.fence, r.worker, r.started = 'R', r.attempt + 1, text(fence), a_worker, at
      end
      local record = run_pack(r)
      events[#events + 1] = 'r'
      events[#events + 1] = run .. '\n' .. record .. '\n' .. at .. '\n' .. detail
      if r.state == 'R' then
        records[#records + 1] = run
        records[#records + 1] = record
        leases[#leases + 1] = lease_end
        leases[#leases + 1] = run
        given[#given + 1] = run
        local queue = string.match(r.queue_key, '^[^:]+')
        starts[queue] = (starts[queue] or 0) + 1
        give(run, r, job_whole(p, job, value))
      else
        gone[#gone + 1] = run
        run_ended(freed, run, r.flags)
        if string.find(r.flags, 'L', 1, true) then last[#last + 1] = {job, r.schedule_version} end
      end
    end
  end
end
if redis.call('HEXISTS', key('workers'), a_worker) == 0 then
  events[#events + 1] = 'h'
  events[#events + 1] = a_worker .. '\n' .. table.concat(names, ',') .. '\n' .. at
end
local done = complete(last, events)
-- Writes.
journal('journal', marker.generation, events)
if fence > fence_before then redis.call('SET', key('fence'), text(fence)) end
variadic('HSET', key('quarantine'), bad, 2)
variadic('HSET', key('runs'), records, 2)
variadic('ZADD', key('leases'), leases, 2)
variadic('HDEL', key('runs'), gone, 1)
variadic('ZADD', key('staged'), later.staged, 2)
variadic('ZADD', key('retries'), later.retries, 2)
if #later.staged + #later.retries > 0 then signal_due(again) end
complete_write(done)
run_ended_write(freed, now)
for i = 1, #drains do
  local d = drains[i]
  if d[3] then
    redis.call('DEL', d[1])
  else
    -- The group's position shows monitors what is consumed; a stream whose group was lost is consumed all the same.
    redis.pcall('XREADGROUP', 'GROUP', 'workers', a_worker, 'NOACK', 'COUNT', d[4], 'STREAMS', d[1], '>')
    local ms, seq = string.match(d[2], '^(%d+)-(%d+)$')
    redis.call('XTRIM', d[1], 'MINID', ms .. '-' .. text(tonumber(seq) + 1))
  end
end
for i = 1, #ready_set do redis.call('ZADD', key('ready', ready_set[i][1]), ready_set[i][3], ready_set[i][2]) end
for i = 1, #ready_gone do
  local g = ready_gone[i]
  redis.call('ZREM', key('ready', g[1]), g[2])
  redis.call('ZADD', key('virtual', g[1]), g[3], g[2])
end
for i = 1, #clocks do
  local virtual = key('virtual', clocks[i][1])
  -- A team that is not ahead of the queue's time starts there anyway.
  redis.call('ZREMRANGEBYSCORE', virtual, '-inf', clocks[i][2])
  redis.call('ZADD', virtual, clocks[i][2], '')
end
for queue, count in pairs(starts) do
  -- What is no number begins anew: nothing may fail any more.
  if type(redis.pcall('HINCRBY', key('starts'), queue, count)) == 'table' then
    redis.call('HSET', key('starts'), queue, count)
  end
end
redis.call('HSET', key('workers'), a_worker, at .. '|' .. table.concat(names, ',') .. '|' .. text(a_lease_ms))
redis.call('HSET', key('requests'), a_worker, a_request .. (#given > 0 and ' ' or '') .. table.concat(given, ' '))
local more = (#picks > 0 and left == 0) or #picks > #given or swept
return {'ok', at, lease_end, more and '1' or '0', replies}
