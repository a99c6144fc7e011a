-- Whether definitions that this Redis had lost are still being restored: a job that is not there may be on its way.
--include key
local in_progress
local function restore_in_progress()
  if in_progress == nil then
    local phase = redis.call('HGET', key('restore'), 'phase')
    in_progress = phase and phase ~= 'done'
  end
  return in_progress
end
