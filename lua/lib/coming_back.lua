-- Whether definitions that this Redis had lost are still being restored: a job that is not there may be on its way.
--include key
local function coming_back()
  local phase = redis.call('HGET', key('repair'), 'phase')
  return phase and phase ~= 'done'
end
