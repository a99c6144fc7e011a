-- Claims every occurrence due up to the horizon and advances its job, in one step: the run exists and the due time has
-- moved, or neither. What needs a computation (a calendar, a misfire) stays due and is named in the reply.
-- MOVES   none -> QUEUED, QUEUED -> QUEUED
-- KEYS    shard owners due heads jobs occurrences runs staged active journal quarantine restore
-- ARGV    generation:text scheduler:text horizon_ms:int limit:int items:[partition:int epoch:int]
--         epoch 0: ownership is not checked. limit: jobs looked at.
-- REPLY   ok now claimed more needs:[schedule after job]... late:[job due]... stale:[partition]... | full now | closed | stale_generation generation
-- COST    3 calls a partition and 1 lookup a distinct (schedule, instant); variadic over the runs
--include guard
--include now_ms
--include journal
--include head_parse
--include run_parse
--include run_create
--include next_occurrence
--include fetch_all
--include variadic
--include check_types
--include release_at
--include extras
--include restore_in_progress
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'heads'}, {'quarantine'})
local now = now_ms()
local at = text(now)
if marker.load_level >= 2 then return {'full', at} end
local horizon = now + a_horizon_ms
local out = {events = {}, records = {}, staged = {}}
local needs, needed, late, stale, left, more = {}, {}, {}, {}, a_limit, 0
local unstaged = {}
local moved, gone, bad, heads_set, heads_gone = {}, {}, {}, {}, {}
-- A mark would cover jobs that are not back yet, whose occurrences nobody has claimed.
local marks = not restore_in_progress()
local partitions = {}
for i = group_at, #ARGV, group_width do partitions[#partitions + 1] = ARGV[i] end
local owners = fetch_all(key('owners'), partitions)
for n = 1, #partitions do
  local p, epoch = partitions[n], ARGV[group_at + (n - 1) * group_width + 1]
  if epoch ~= '0' and owners[n] ~= a_scheduler .. '|' .. epoch then
    stale[#stale + 1] = p
  elseif left <= 0 then
    more = 1
    break
  else
    local entries = redis.call('ZRANGE', key('due', p, 0), 0, left, 'WITHSCORES')
    local jobs, dues, lowest = {}, {}, nil
    for i = 1, #entries, 2 do
      local due = tonumber(entries[i + 1])
      if due > horizon or #jobs >= left then
        lowest = due
        if due <= horizon then more = 1 end
        break
      end
      jobs[#jobs + 1] = entries[i]
      dues[#dues + 1] = due
    end
    left = left - #jobs
    local values = fetch_all(key('jobs', p, 0), jobs)
    local runs = {}
    for i = 1, #jobs do runs[i] = jobs[i] .. ':' .. text(dues[i]) end
    local present = fetch_all(key('runs'), runs)
    local zadd, zrem = {}, {}
    for i = 1, #jobs do
      local job, due, head, stays, following = jobs[i], dues[i], head_parse(values[i]), false, nil
      if head and head.kind == 'e' and not string.match(head.arg, '^%-?%d+,[1-9]%d*$') then head = nil end
      if not head then
        bad[#bad + 1] = job
        bad[#bad + 1] = values[i] or 'due entry without definition'
        out.events[#out.events + 1] = 'x'
        out.events[#out.events + 1] = 'due\n' .. job .. '\n' .. at .. '\n' .. (values[i] or '')
        zrem[#zrem + 1] = job
      elseif head.state ~= 'a' then
        zrem[#zrem + 1] = job
      else
        local window, overlap, slack = '', '', head.grace
        if string.byte(head.rest) == 124 then
          local fields = extras(head)
          window, overlap = fields[2], fields[3]
          if window ~= '' then slack = slack + tonumber(string.match(window, '^%d+')) end
        end
        if due < now - slack and not (head.kind == 'o' and (head.misfire == 'o' or head.misfire == 'a')) then
          late[#late + 1] = job
          late[#late + 1] = text(due)
          stays = true
        elseif head.kind == 'e' then
          local anchor, every = string.match(head.arg, '^(%-?%d+),(%d+)$')
          anchor, every = tonumber(anchor), tonumber(every)
          following = anchor + (math.floor((due - anchor) / every) + 1) * every
        elseif head.kind == 'c' then
          following = next_occurrence(head.arg, due)
          if following == nil then
            stays = true
            if not needed[head.arg] then
              needed[head.arg] = #needs + 1
              needs[#needs + 1] = head.arg
              needs[#needs + 1] = text(due)
              needs[#needs + 1] = job
            elseif due < tonumber(needs[needed[head.arg] + 1]) then
              needs[needed[head.arg] + 1] = text(due)
            end
          elseif following == 'end' then
            following = nil
          end
        end
        if stays then
          if not lowest or due < lowest then lowest = due end
        else
          local old = run_parse(present[i])
          local start = text(release_at(runs[i], due, window, following))
          if not old then
            run_create(out, runs[i], head, start, at, following and '' or 'L', overlap)
          elseif old.state == 'Q' and old.schedule_version < head.schedule_version then
            local before = staged_member(runs[i], old.queue_key, old.flags)
            old.schedule_version, old.revision = head.schedule_version, run_first_revision(head.schedule_version)
            if redis.call('ZSCORE', key('staged'), before) and not redis.call('ZSCORE', key('active', job), runs[i]) then
              old.flags, old.due = (following and '' or 'L') .. overlap, start
              unstaged[#unstaged + 1] = before
              out.staged[#out.staged + 1] = start
              out.staged[#out.staged + 1] = staged_member(runs[i], old.queue_key, old.flags)
            else
              -- Released already, or let go after it waited: judged by the policy it had.
              old.flags = (following and '' or 'L') .. (string.match(old.flags, '%l') or '')
            end
            local record = run_pack(old)
            out.events[#out.events + 1] = 'r'
            out.events[#out.events + 1] = runs[i] .. '\n' .. record .. '\n' .. at .. '\n'
            out.records[#out.records + 1] = runs[i]
            out.records[#out.records + 1] = record
          end
          if following then
            zadd[#zadd + 1] = text(following)
            zadd[#zadd + 1] = job
            if not lowest or following < lowest then lowest = following end
          else
            zrem[#zrem + 1] = job
          end
        end
      end
    end
    if #zadd > 0 then moved[#moved + 1] = {p, zadd} end
    if #zrem > 0 then gone[#gone + 1] = {p, zrem} end
    if lowest then
      heads_set[#heads_set + 1] = text(lowest)
      heads_set[#heads_set + 1] = p
    else
      heads_gone[#heads_gone + 1] = p
    end
    if marks and #zadd + #zrem > 0 then
      out.events[#out.events + 1] = 'w'
      out.events[#out.events + 1] = p .. '\n' .. text(math.min(lowest or horizon, horizon))
    end
  end
end
journal('journal', marker.generation, out.events)
variadic('HSET', key('quarantine'), bad, 2)
variadic('HSET', key('runs'), out.records, 2)
variadic('ZREM', key('staged'), unstaged, 1)
variadic('ZADD', key('staged'), out.staged, 2)
for i = 1, #moved do variadic('ZADD', key('due', moved[i][1], 0), moved[i][2], 2) end
for i = 1, #gone do variadic('ZREM', key('due', gone[i][1], 0), gone[i][2], 1) end
variadic('ZADD', key('heads'), heads_set, 2)
variadic('ZREM', key('heads'), heads_gone, 1)
return {'ok', at, text(#out.staged / 2), text(more), needs, late, stale}
