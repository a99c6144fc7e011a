-- Tells schedulers that something is due at `ms`, so that one which sleeps past it wakes up.
--include key
local function signal_due(ms)
  redis.call('PUBLISH', key('signals'), 'due ' .. ms)
end
