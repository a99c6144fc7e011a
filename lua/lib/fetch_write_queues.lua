-- Cuts what was fetched from the queue streams, and writes the virtual times of teams and queues.
--include key
--include text
local function fetch_write_queues(plan)
  for _, drain in ipairs(plan.drains) do
    if drain.whole then
      redis.call('DEL', drain.stream)
    else
      -- The group's position shows monitors what is consumed; a stream whose group was lost is consumed all the same.
      redis.pcall('XREADGROUP', 'GROUP', 'workers', plan.worker, 'NOACK', 'COUNT', drain.count, 'STREAMS', drain.stream, '>')
      local ms, sequence = string.match(drain.last, '^(%d+)-(%d+)$')
      redis.call('XTRIM', drain.stream, 'MINID', ms .. '-' .. text(tonumber(sequence) + 1))
    end
  end
  for _, charged in ipairs(plan.charged) do
    local queue, team, time = unpack(charged)
    redis.call('ZADD', key('ready', queue), time, team)
  end
  for _, done in ipairs(plan.done) do
    local queue, team, time = unpack(done)
    redis.call('ZREM', key('ready', queue), team)
    redis.call('ZADD', key('virtual', queue), time, team)
  end
  for _, clock in ipairs(plan.clocks) do
    local virtual, time = key('virtual', clock[1]), clock[2]
    -- A team that is not ahead of the queue's time starts there anyway.
    redis.call('ZREMRANGEBYSCORE', virtual, '-inf', time)
    redis.call('ZADD', virtual, time, '')
  end
end
