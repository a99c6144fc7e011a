-- Reads the entries that `fair_shares` gave of a queue's streams, and collects in `plan` the runs, what is to be cut from the
-- streams, and where teams and queue stand. `clock`: the queue's virtual time, 0 for unchanged.
--include key
--include text
local function fetch_take(plan, queue, teams, clock)
  local idle = #teams == redis.call('ZCARD', key('ready', queue))
  for _, team in ipairs(teams) do
    idle = idle and team.total == team.given
    for priority = 0, 2 do
      local take = team.taken[priority]
      if take > 0 then
        local stream = key('q', queue .. ':' .. team.team .. ':' .. priority)
        local entries = redis.call('XRANGE', stream, '-', '+', 'COUNT', take)
        for _, entry in ipairs(entries) do plan.picks[#plan.picks + 1] = entry[2][2] end
        plan.drains[#plan.drains + 1] =
          {stream = stream, last = entries[#entries][1], whole = team.sizes[priority] == take, count = take}
      end
    end
    if team.total == 0 then plan.swept = true end
    if team.total == team.given then
      plan.done[#plan.done + 1] = {queue, team.team, text(team.time)}
    elseif team.given > 0 then
      plan.charged[#plan.charged + 1] = {queue, team.team, text(team.time)}
    end
  end
  if idle then
    -- Nobody waits: what each team was given before counts no more.
    for _, team in ipairs(teams) do clock = math.max(clock, team.time) end
  end
  if clock > 0 then plan.clocks[#plan.clocks + 1] = {queue, text(clock)} end
end
