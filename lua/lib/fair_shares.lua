-- Divides up to `slots` runs among the ready teams of a queue by virtual time, in rounds: each team in turn, the one that had
-- the least first, is given an even quantum until slots or work run out, or teams were visited `visits` times. `teams`: list of
-- {team, time, sizes, total, taken, given}, in which time, taken and given move on, and which is left in the order of time.
-- Returns the slots and visits that are left, and the latest time at which a team was given something, 0 for none.
--include priority_shares
local function fair_shares(teams, slots, visits)
  local clock, active = 0, #teams
  while slots > 0 and visits > 0 and active > 0 do
    local quantum = math.max(1, math.ceil(slots / active))
    active = 0
    table.sort(teams, function(x, y) return x.time < y.time or (x.time == y.time and x.team < y.team) end)
    for _, team in ipairs(teams) do
      visits = visits - 1
      if slots > 0 and visits >= 0 and team.total > team.given then
        local take = math.min(quantum, slots, team.total - team.given)
        local given = priority_shares(team.sizes, team.taken, take, team.time)
        team.given = team.given + given
        slots = slots - given
        clock = math.max(clock, team.time)
        team.time = team.time + given
        if team.total > team.given then active = active + 1 end
      end
    end
  end
  return slots, visits, clock
end
