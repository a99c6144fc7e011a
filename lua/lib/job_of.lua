-- The job of a run: the first 15 characters of the run's id.
local function job_of(run)
  return string.sub(run, 1, 15)
end
