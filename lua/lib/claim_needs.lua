-- Notes that occurrences of a schedule after `due` have to be computed before this job can be claimed: once a schedule, from the
-- earliest instant.
--include text
local function claim_needs(plan, schedule, due, job)
  local needs, place = plan.needs, plan.needed[schedule]
  if not place then
    plan.needed[schedule] = #needs + 1
    needs[#needs + 1] = schedule
    needs[#needs + 1] = text(due)
    needs[#needs + 1] = job
  elseif due < tonumber(needs[place + 1]) then
    needs[place + 1] = text(due)
  end
end
