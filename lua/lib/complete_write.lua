-- Writes what `complete` prepared; the body stays where it is.
--include key
local function complete_write(prepared)
  for i = 1, #prepared do redis.call('HSET', key('jobs', prepared[i][1], 0), prepared[i][2], prepared[i][3]) end
end
