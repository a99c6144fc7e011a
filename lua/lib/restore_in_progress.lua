-- Whether definitions that this Redis had lost are still being restored: a job that is not there may be on its way.
--include key
local coming
local function restore_in_progress()
  if coming == nil then
    local phase = redis.call('HGET', key('restore'), 'phase')
    coming = phase and phase ~= 'done'
  end
  return coming
end
