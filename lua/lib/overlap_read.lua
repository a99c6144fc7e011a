-- The runs of a job whose runs must not overlap, as its set `active` and their records have them: {going, waiting, records,
-- replaced, added, removed}. going: run -> record of those that were released and have not ended (score 0); waiting: runs in the
-- order of the instants at which they were due, with `records`; replaced: runs whose turn a later one has taken; added, removed:
-- what is to change in the set.
--include key
--include fetch_all
--include run_parse
local function overlap_read(job)
  local of_job = {going = {}, waiting = {}, records = {}, replaced = {}, added = {}, removed = {}}
  local entries = redis.call('ZRANGE', key('active', job), 0, -1, 'WITHSCORES')
  local runs = {}
  for i = 1, #entries, 2 do runs[#runs + 1] = entries[i] end
  local values = fetch_all(key('runs'), runs)
  for i, run in ipairs(runs) do
    -- By its record, and not by the entry alone.
    local record = run_parse(values[i])
    if not record then of_job.removed[#of_job.removed + 1] = run
    elseif entries[i * 2] == '0' then of_job.going[run] = record
    else
      of_job.waiting[#of_job.waiting + 1] = run
      of_job.records[run] = record
    end
  end
  return of_job
end
