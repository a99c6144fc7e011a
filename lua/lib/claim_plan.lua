-- Decides about a page of due jobs as `claim_read` gave it, and collects in `plan` what is to be written and told. `plan` has
-- the times `now`, `at` (as text) and `horizon`, and `marks`, whether watermarks may move.
--include codes
--include text
--include head_parse
--include has_optional
--include optional_parse
--include release_at
--include claim_verdict
--include claim_run
--include claim_needs
--include event_quarantine
--include event_watermark
local function claim_plan(plan, page)
  local advanced, removed, lowest = {}, {}, page.lowest
  for i, job in ipairs(page.jobs) do
    local due, value, run, waits = page.dues[i], page.values[i], page.runs[i], nil
    local head = head_parse(value)
    if head and head.kind == SCHEDULE.INTERVAL and not string.match(head.arg, '^%-?%d+,[1-9]%d*$') then head = nil end
    if not head then
      plan.unreadable[#plan.unreadable + 1] = job
      plan.unreadable[#plan.unreadable + 1] = value or 'due entry without definition'
      event_quarantine(plan.events, 'due', job, value or '', plan.at)
      removed[#removed + 1] = job
    elseif head.state ~= JOB_STATE.ACTIVE then
      removed[#removed + 1] = job
    else
      local window, overlap = '', ''
      if has_optional(head) then
        local optional = optional_parse(head)
        window, overlap = optional.window, optional.overlap
      end
      local verdict, following = claim_verdict(head, due, plan.now, window)
      if verdict == 'late' then
        plan.late[#plan.late + 1] = job
        plan.late[#plan.late + 1] = text(due)
        waits = due
      elseif verdict == 'unknown' then
        claim_needs(plan, head.arg, due, job)
        waits = due
      else
        local start, last = text(release_at(run, due, window, following)), following and '' or FLAG.LAST
        claim_run(plan, run, head, page.records[i], start, last, overlap)
        if following then
          advanced[#advanced + 1] = text(following)
          advanced[#advanced + 1] = job
          waits = following
        else
          removed[#removed + 1] = job
        end
      end
      if waits and (not lowest or waits < lowest) then lowest = waits end
    end
  end
  plan.partitions[#plan.partitions + 1] = {partition = page.partition, advanced = advanced, removed = removed, lowest = lowest}
  if plan.marks and #advanced + #removed > 0 then
    event_watermark(plan.events, page.partition, text(math.min(lowest or plan.horizon, plan.horizon)))
  end
end
