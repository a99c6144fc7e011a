-- What becomes of an active job at its due instant: 'run', with the occurrence that follows (nil: none); 'late', for its misfire
-- policy to decide; 'unknown' where what follows has to be computed. `window`: its catch-up or start window as the head has it.
--include codes
--include next_occurrence
local function claim_verdict(head, due, now, window)
  local slack = head.grace_ms
  if window ~= '' then slack = slack + tonumber(string.match(window, '^%d+')) end
  if due < now - slack
      and not (head.kind == SCHEDULE.INSTANT and (head.misfire == MISFIRE.RUN_ONCE or head.misfire == MISFIRE.RUN_ALL)) then
    return 'late'
  end
  if head.kind == SCHEDULE.INTERVAL then
    local anchor, every = string.match(head.arg, '^(%-?%d+),(%d+)$')
    anchor, every = tonumber(anchor), tonumber(every)
    return 'run', anchor + (math.floor((due - anchor) / every) + 1) * every
  end
  if head.kind == SCHEDULE.COMPUTED then
    local following = next_occurrence(head.arg, due)
    if following == nil then return 'unknown' end
    if following ~= 'end' then return 'run', following end
  end
  return 'run', nil
end
