-- When a late run is due to go, as text: now. `closed`: the shard's last closing while runs are held, else nil or false; an
-- instant that is not after it is held like what was due then, since a worker nobody knows may be at that very run.
--include text
local function late_due(closed, instant, now)
  return text(closed and tonumber(instant) <= closed and math.min(closed, now) or now)
end
