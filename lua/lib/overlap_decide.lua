-- Decides at its release whether a run may start beside the open runs of its job: 'go', 'wait' or 'skip'. An open run is one
-- that went and has not ended (score 0), by its record and not by the entry alone; a waiting one keeps the instant it was due.
-- `judge`: {jobs = {}}, kept over one script; collects opened, closed (of a set), skipped and cancelled runs.
--include key
--include fetch_all
--include run_parse
local function overlap_decide(judge, run, r, letter)
  local job = string.sub(run, 1, 15)
  local o = judge.jobs[job]
  if not o then
    o = {active = {}, waiting = {}, records = {}, skipped = {}, opened = {}, closed = {}}
    judge.jobs[job] = o
    local entries = redis.call('ZRANGE', key('active', job), 0, -1, 'WITHSCORES')
    local runs = {}
    for i = 1, #entries, 2 do runs[#runs + 1] = entries[i] end
    local values = fetch_all(key('runs'), runs)
    for i = 1, #runs do
      local found = run_parse(values[i])
      if not found then o.closed[#o.closed + 1] = runs[i]
      elseif entries[i * 2] == '0' then o.active[runs[i]] = found
      else
        o.waiting[#o.waiting + 1] = runs[i]
        o.records[runs[i]] = found
      end
    end
  end
  -- One that went before the shard was opened anew goes on; one that a later run has taken the turn of is done with.
  if o.active[run] then return 'go' end
  if o.skipped[run] then return 'skip' end
  o.records[run] = r
  local others, own, busy = {}, nil, false
  for i = 1, #o.waiting do
    if o.waiting[i] == run then own = i else others[#others + 1] = o.waiting[i] end
  end
  for active in pairs(o.active) do
    if active ~= run then busy = true end
  end
  local verdict = 'go'
  if letter == 's' then
    if busy then verdict = 'skip' end
  elseif letter == 'q' or letter == 'w' then
    if busy or (own or 1) > 1 or (not own and #others > 0) then
      verdict = (letter == 'q' and not own and #others > 0) and 'skip' or 'wait'
    end
  elseif letter == 'k' then
    if not own then
      -- A later one takes the turn of those that wait.
      for i = 1, #others do
        judge.skipped[#judge.skipped + 1] = {others[i], o.records[others[i]]}
        o.skipped[others[i]] = true
        o.closed[#o.closed + 1] = others[i]
      end
      others = {}
    end
    busy = false
    for active, found in pairs(o.active) do
      if active ~= run then
        if not found.asked and not string.find(found.flags, 'X', 1, true) then
          judge.cancelled[#judge.cancelled + 1] = {active, found}
        end
        found.asked = true
        if found.state == 'T' then o.active[active] = nil else busy = true end
      end
    end
    if busy or (own or 1) > 1 then verdict = 'wait' end
  end
  o.waiting = others
  if verdict == 'wait' then
    table.insert(o.waiting, own or #o.waiting + 1, run)
    if not own then
      o.opened[#o.opened + 1] = r.due
      o.opened[#o.opened + 1] = run
    end
  elseif verdict == 'go' then
    o.active[run] = r
    o.opened[#o.opened + 1] = '0'
    o.opened[#o.opened + 1] = run
  else
    judge.skipped[#judge.skipped + 1] = {run, r}
    if own then o.closed[#o.closed + 1] = run end
  end
  return verdict
end
