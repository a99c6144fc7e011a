-- Drops what belonged to runs that have ended, and lets the next one go of each job whose runs must not overlap.
-- `out`: what `run_ended` noted. Nothing here can fail.
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
    local open = key('active', job)
    variadic('ZREM', open, runs, 1)
    local first = redis.call('ZRANGE', open, 0, 0, 'WITHSCORES')
    while first[1] and first[2] ~= '0' do
      local r = run_parse(redis.call('HGET', key('runs'), first[1]))
      if r and r.state == 'Q' then
        staged[#staged + 1] = text(now)
        staged[#staged + 1] = staged_member(first[1], r.queue_key, r.flags)
        break
      end
      redis.call('ZREM', open, first[1])
      first = redis.call('ZRANGE', open, 0, 0, 'WITHSCORES')
    end
  end
  variadic('ZADD', key('staged'), staged, 2)
  if #staged > 0 then signal_due(text(now)) end
end
