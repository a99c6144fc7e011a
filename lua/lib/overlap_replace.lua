-- Lets a run take the turn of all others of its job: those that wait are skipped (unless it waits itself), those that go are
-- asked to stop. Returns those that still wait, and whether one goes on for now.
--include codes
local function overlap_replace(judge, of_job, run, others, place)
  if not place then
    for _, other in ipairs(others) do
      judge.skipped[#judge.skipped + 1] = {other, of_job.records[other]}
      of_job.replaced[other] = true
      of_job.removed[#of_job.removed + 1] = other
    end
    others = {}
  end
  local busy = false
  for other, record in pairs(of_job.going) do
    if other ~= run then
      if not record.asked and not string.find(record.flags, FLAG.CANCEL, 1, true) then
        judge.cancelled[#judge.cancelled + 1] = {other, record}
      end
      record.asked = true
      if record.state == STATE.RETRYING then of_job.going[other] = nil else busy = true end
    end
  end
  return others, busy
end
