-- Whether runs that were due before the shard's last closing are still held, because a worker may be active on them:
-- until every worker known then has adopted, or one full lease has passed.
--include key
local function held(marker, now)
  return marker.hold_until and now < marker.hold_until and redis.call('SCARD', key('holders')) > 0
end
