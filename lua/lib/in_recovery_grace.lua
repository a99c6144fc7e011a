-- Whether the shard is in its recovery grace period: runs that were due before its last closing are held back, because a worker
-- may be active on them, until every worker known then has adopted, or one full lease has passed.
--include key
local function in_recovery_grace(marker, now)
  return marker.recovery_grace_until and now < marker.recovery_grace_until and redis.call('SCARD', key('unconfirmed')) > 0
end
