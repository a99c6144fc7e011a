-- Sets a job's due instant (text ms), '' for none; keeps `heads` true and wakes schedulers for an earlier head.
--include key
--include head_update
--include signal_due
local function due_set(partition, job, due)
  if due == '' then
    redis.call('ZREM', key('due', partition, 0), job)
    head_update(partition)
    return
  end
  redis.call('ZADD', key('due', partition, 0), due, job)
  if head_update(partition) == due then signal_due(due) end
end
