-- Raises before anything is written if a key that `enqueue` of these lanes needs is of another type.
--include key
--include split_lane
local function typed_lanes(lanes)
  for lane in pairs(lanes) do
    local queue = split_lane(lane)
    redis.call('XLEN', key('q', lane))
    redis.call('ZCARD', key('ready', queue))
    redis.call('ZCARD', key('virtual', queue))
  end
end
