-- Collects the events of what `overlap_decide` decided; gives its writes as a function, to be called after all others. Reads only.
--include key
--include text
--include run_pack
--include complete
--include complete_write
--include variadic
--include staged_member
--include signal_due
local function overlap_write(judge, events, now)
  local at = text(now)
  local records, gone, payloads, retries, last, asked = {}, {}, {}, {}, {}, {}
  local function ends(run, r, state, detail)
    r.state, r.revision = state, r.revision + 1
    events[#events + 1] = 'r'
    events[#events + 1] = run .. '\n' .. run_pack(r) .. '\n' .. at .. '\n' .. detail
    gone[#gone + 1] = run
    if string.find(r.flags, 'P', 1, true) then payloads[#payloads + 1] = run end
    if string.find(r.flags, 'L', 1, true) then last[#last + 1] = {string.sub(run, 1, 15), r.schedule_version} end
  end
  for i = 1, #judge.skipped do ends(judge.skipped[i][1], judge.skipped[i][2], 'K', 'overlap') end
  for i = 1, #judge.cancelled do
    local run, r = judge.cancelled[i][1], judge.cancelled[i][2]
    if r.state == 'T' then
      retries[#retries + 1] = run .. '|' .. r.queue_key
      ends(run, r, 'C', 'cancelled for the next run')
      local closed = judge.jobs[string.sub(run, 1, 15)].closed
      closed[#closed + 1] = run
    else
      r.flags, r.revision = r.flags .. 'X', r.revision + 1
      local record = run_pack(r)
      events[#events + 1] = 'r'
      events[#events + 1] = run .. '\n' .. record .. '\n' .. at .. '\n'
      records[#records + 1] = run
      records[#records + 1] = record
      if r.state == 'R' then asked[#asked + 1] = run end
    end
  end
  local done = complete(last, events)
  return function()
    variadic('HSET', key('runs'), records, 2)
    variadic('HDEL', key('runs'), gone, 1)
    variadic('HDEL', key('payloads'), payloads, 1)
    variadic('ZREM', key('retries'), retries, 1)
    for job, o in pairs(judge.jobs) do
      variadic('ZADD', key('active', job), o.opened, 2)
      variadic('ZREM', key('active', job), o.closed, 1)
      local first = not next(o.active) and o.waiting[1]
      if first then
        -- Nobody else would let it go: what it waited for has left no record.
        redis.call('ZADD', key('staged'), at, staged_member(first, o.records[first].queue_key, o.records[first].flags))
        signal_due(at)
      end
    end
    complete_write(done)
    for i = 1, #asked do redis.call('PUBLISH', key('signals'), 'cancel ' .. asked[i]) end
  end
end
