-- Reads what is due in a partition up to the horizon, at most `most` jobs: {partition, jobs, dues, values, runs, records,
-- lowest, more}. values: of the jobs; records: of their runs, as text; lowest: the first due time that is left, nil for none;
-- more: whether it is due, too.
--include key
--include text
--include fetch_all
local function claim_read(partition, most, horizon)
  local entries = redis.call('ZRANGE', key('due', partition, 0), 0, most, 'WITHSCORES')
  local jobs, dues, runs, lowest, more = {}, {}, {}, nil, false
  for i = 1, #entries, 2 do
    local due = tonumber(entries[i + 1])
    if due > horizon or #jobs >= most then
      lowest, more = due, due <= horizon
      break
    end
    jobs[#jobs + 1] = entries[i]
    dues[#dues + 1] = due
    runs[#runs + 1] = entries[i] .. ':' .. text(due)
  end
  return {
    partition = partition,
    jobs = jobs,
    dues = dues,
    values = fetch_all(key('jobs', partition, 0), jobs),
    runs = runs,
    records = fetch_all(key('runs'), runs),
    lowest = lowest,
    more = more,
  }
end
