-- Drops from a page of a set the entries of no run (or, among catch-up ranges, of no job, with a skip on record); what cannot
-- be read is quarantined.
-- MOVES
-- KEYS    shard staged retries leases catchup heads runs jobs quarantine journal
-- ARGV    generation:text set:text cursor:text count:int write:int
--         set: staged, retries, leases, catchup or heads. write 0: only finds.
-- REPLY   ok now cursor found:[kind entry]... | closed | stale_generation generation
-- COST    2 calls a page and 1 an entry
--include guard
--include now_ms
--include key
--include text
--include journal
--include run_parse
--include staged_member
--include partition_of
--include variadic
--include check_types
--include codes
--include retry_member
--include event_catchup_done
--include event_quarantine
--include event_skip
--include range_parse
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({a_set}, {'runs', 'quarantine'})
local at = text(now_ms())
local page = redis.call('ZSCAN', key(a_set), a_cursor, 'COUNT', a_count)
local found, events, gone, unreadable = {}, {}, {}, {}
local queue_keys = '^([^|]+)|([^:|]+:[^:|]+:[^:|]+)|?(%l?)$'
for i = 1, #page[2], 2 do
  local entry, kind, range = page[2][i], nil, nil
  if a_set == 'heads' then
    local partition = tonumber(string.match(entry, '^%d%d?%d?%d?$'))
    if not partition or partition > 1023 then kind = 'head_without_partition' end
  elseif a_set == 'catchup' then
    local parsed = range_parse(entry)
    local partition = parsed and partition_of(parsed.job)
    if not partition then kind = 'unreadable_range'
    elseif redis.call('HEXISTS', key('jobs', partition, 0), parsed.job) == 0 then
      kind, range = 'range_without_job', parsed
    end
  else
    local run = entry
    if a_set ~= 'leases' then run = string.match(entry, queue_keys) end
    if not run then kind = 'unreadable_entry'
    else
      local packed = redis.call('HGET', key('runs'), run)
      local record = run_parse(packed)
      -- A record that cannot be read is for whoever looks at records.
      if not packed then kind = a_set == 'leases' and 'lease_without_run' or 'entry_without_run'
      elseif record then
        local right = a_set == 'leases' and record.state == STATE.RUNNING
          or a_set == 'staged' and record.state == STATE.QUEUED and staged_member(run, record.queue_key, record.flags) == entry
          or a_set == 'retries' and record.state == STATE.RETRYING and retry_member(run, record.queue_key) == entry
        if not right then kind = a_set == 'leases' and 'lease_without_run' or 'entry_without_run' end
      end
    end
  end
  if kind then
    found[#found + 1] = kind
    found[#found + 1] = entry
    gone[#gone + 1] = entry
    if kind == 'unreadable_range' or kind == 'unreadable_entry' then
      unreadable[#unreadable + 1] = entry
      unreadable[#unreadable + 1] = 'unreadable in ' .. a_set
      event_quarantine(events, a_set, entry, '', at)
    elseif range then
      event_skip(events, range.job, range.from, range.to, '1', 'deleted', at)
      event_catchup_done(events, range, at)
    end
  end
end
if a_write == 1 then
  journal('journal', marker.generation, events)
  variadic('HSET', key('quarantine'), unreadable, 2)
  variadic('ZREM', key(a_set), gone, 1)
end
return {'ok', at, page[1], found}
