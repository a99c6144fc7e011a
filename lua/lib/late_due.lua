-- When a late run is to be released, as text: now. `closed`: the shard's last closing during a recovery grace period, else nil
-- or false; an occurrence that is not after it is held back like what was due then, since a worker nobody knows may be at that
-- very run.
--include text
local function late_due(closed, instant, now)
  return text(closed and tonumber(instant) <= closed and math.min(closed, now) or now)
end
