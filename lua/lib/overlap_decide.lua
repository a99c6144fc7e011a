-- Decides at its release whether a run may start beside the active runs of its job: 'go', 'wait' or 'skip'.
-- `judge`: {jobs = {}, skipped = {}, cancelled = {}}, kept over one script; collects the skipped and cancelled runs.
--include codes
--include job_of
--include overlap_read
--include overlap_replace
local function overlap_decide(judge, run, record, letter)
  local job = job_of(run)
  local of_job = judge.jobs[job]
  if not of_job then
    of_job = overlap_read(job)
    judge.jobs[job] = of_job
  end
  -- One that went before the shard's recovery goes on; one that a later run has taken the turn of is done with.
  if of_job.going[run] then return 'go' end
  if of_job.replaced[run] then return 'skip' end
  of_job.records[run] = record
  local others, place, busy = {}, nil, false
  for i, waiting in ipairs(of_job.waiting) do
    if waiting == run then place = i else others[#others + 1] = waiting end
  end
  for going in pairs(of_job.going) do
    if going ~= run then busy = true end
  end
  local verdict = 'go'
  if letter == OVERLAP.SKIP then
    if busy then verdict = 'skip' end
  elseif letter == OVERLAP.QUEUE_ONE or letter == OVERLAP.QUEUE_ALL then
    local comes_last = not place and #others > 0
    if busy or (place or 1) > 1 or comes_last then
      verdict = (letter == OVERLAP.QUEUE_ONE and comes_last) and 'skip' or 'wait'
    end
  elseif letter == OVERLAP.CANCEL_RUNNING then
    others, busy = overlap_replace(judge, of_job, run, others, place)
    if busy or (place or 1) > 1 then verdict = 'wait' end
  end
  of_job.waiting = others
  local added = of_job.added
  if verdict == 'wait' then
    table.insert(others, place or #others + 1, run)
    if not place then
      added[#added + 1] = record.due_at
      added[#added + 1] = run
    end
  elseif verdict == 'go' then
    of_job.going[run] = record
    added[#added + 1] = '0'
    added[#added + 1] = run
  else
    judge.skipped[#judge.skipped + 1] = {run, record}
    if place then of_job.removed[#of_job.removed + 1] = run end
  end
  return verdict
end
