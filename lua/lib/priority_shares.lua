-- Divides `take` runs of a team among its priorities 0 (first) to 2, as far as there are runs, and counts them in `taken`;
-- returns how many. The floor: an eighth of what a team is given goes to its lower priorities first; of less than eight, single
-- runs by turns, as the team's virtual `time` tells. `sizes`, `taken`: by priority.
local function priority_shares(sizes, taken, take, time)
  local free = {[0] = sizes[0] - taken[0], sizes[1] - taken[1], sizes[2] - taken[2]}
  local floor = math.ceil(take / 8)
  if take < 8 then floor = (time + take) % 8 < take and 1 or 0 end
  local half = math.ceil(floor / 2)
  local lowest = math.min(free[1] > 0 and half or floor, free[2], take)
  local middle = math.min(math.floor(floor / 2) + (free[2] > 0 and 0 or half), free[1], take)
  local shares = {[0] = 0, middle, lowest}
  local rest = take - middle - lowest
  for priority = 0, 2 do
    local more = math.min(rest, free[priority] - shares[priority])
    rest = rest - more
    taken[priority] = taken[priority] + shares[priority] + more
  end
  return take - rest
end
