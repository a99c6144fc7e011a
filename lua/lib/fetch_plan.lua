-- Decides about the runs that `fetch_take` picked, by what they have become meanwhile, and collects in `plan` what is to be
-- written. `plan` has the times `at`, `again` and `lease_end` as text, the `worker` and the last `fence`.
--include codes
--include key
--include text
--include fetch_all
--include run_parse
--include run_pack
--include run_ended
--include head_parse
--include partition_of
--include job_of
--include job_whole
--include staged_member
--include retry_member
--include restore_in_progress
--include fetch_reply
--include fetch_verdict
--include event_run
--include event_quarantine
local function fetch_plan(plan)
  local events, records, leases, given, gone = plan.events, plan.records, plan.leases, plan.given, plan.gone
  local values, seen = fetch_all(key('runs'), plan.picks), {}
  for i, run in ipairs(plan.picks) do
    local record = run_parse(values[i])
    if values[i] and not record then
      plan.unreadable[#plan.unreadable + 1] = run
      plan.unreadable[#plan.unreadable + 1] = values[i]
      event_quarantine(events, 'run', run, values[i], plan.at)
      gone[#gone + 1] = run
      -- Whatever its policy was, those that wait for it must not wait for ever.
      run_ended(plan, run, OVERLAP.QUEUE_ALL)
    elseif record and not seen[run] and (record.state == STATE.QUEUED or record.state == STATE.RETRYING) then
      seen[run] = true
      local partition, job = partition_of(run), job_of(run)
      local value = redis.call('HGET', key('jobs', partition, 0), job)
      local head = head_parse(value)
      if not head and restore_in_progress() then
        -- Without its definition it can neither run nor be judged: it comes again, as it is.
        local set, member = plan.retries, retry_member(run, record.queue_key)
        if record.state == STATE.QUEUED then set, member = plan.staged, staged_member(run, record.queue_key, record.flags) end
        set[#set + 1] = plan.again
        set[#set + 1] = member
      else
        local state, detail = fetch_verdict(run, record, head)
        record.state, record.revision = state, record.revision + 1
        if state == STATE.RUNNING then
          plan.fence = plan.fence + 1
          record.attempt, record.fence = record.attempt + 1, text(plan.fence)
          record.worker, record.started_at = plan.worker, plan.at
        end
        local packed = run_pack(record)
        event_run(events, run, packed, plan.at, detail)
        if state == STATE.RUNNING then
          records[#records + 1] = run
          records[#records + 1] = packed
          leases[#leases + 1] = plan.lease_end
          leases[#leases + 1] = run
          given[#given + 1] = run
          local queue = string.match(record.queue_key, '^[^:]+')
          plan.starts[queue] = (plan.starts[queue] or 0) + 1
          fetch_reply(plan.replies, run, record, job_whole(partition, job, value))
        else
          gone[#gone + 1] = run
          run_ended(plan, run, record.flags)
          if string.find(record.flags, FLAG.LAST, 1, true) then plan.last[#plan.last + 1] = {job, record.schedule_version} end
        end
      end
    end
  end
end
