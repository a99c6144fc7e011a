-- Drops what belonged to runs that have ended, and releases the next run of each job whose runs must not overlap.
-- `out`: what `run_ended` noted. Nothing here can fail.
--include codes
--include key
--include text
--include run_parse
--include staged_member
--include signal_due
--include variadic
local function run_ended_write(out, now)
  local staged = {}
  variadic('HDEL', key('payloads'), out.payloads, 1)
  for job, runs in pairs(out.freed) do
    local active = key('active', job)
    variadic('ZREM', active, runs, 1)
    local first = redis.call('ZRANGE', active, 0, 0, 'WITHSCORES')
    while first[1] and first[2] ~= '0' do
      local record = run_parse(redis.call('HGET', key('runs'), first[1]))
      if record and record.state == STATE.QUEUED then
        staged[#staged + 1] = text(now)
        staged[#staged + 1] = staged_member(first[1], record.queue_key, record.flags)
        break
      end
      redis.call('ZREM', active, first[1])
      first = redis.call('ZRANGE', active, 0, 0, 'WITHSCORES')
    end
  end
  variadic('ZADD', key('staged'), staged, 2)
  if #staged > 0 then signal_due(text(now)) end
end
