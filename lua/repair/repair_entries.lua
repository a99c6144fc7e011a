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
--include catchup_event
--include variadic
--include check_types
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({a_set}, {'runs', 'quarantine'})
local at = text(now_ms())
local page = redis.call('ZSCAN', key(a_set), a_cursor, 'COUNT', a_count)
local found, events, gone, bad = {}, {}, {}, {}
local queue_keys = '^([^|]+)|([^:|]+:[^:|]+:[^:|]+)|?(%l?)$'
for i = 1, #page[2], 2 do
  local entry, kind, range = page[2][i], nil, nil
  if a_set == 'heads' then
    local p = tonumber(string.match(entry, '^%d%d?%d?%d?$'))
    if not p or p > 1023 then kind = 'head_of_no_partition' end
  elseif a_set == 'catchup' then
    local job, from, to, schedule_version, flags, made = string.match(entry, '^([^|]+)|(%d+)|(%d+)|(%d+)|(%a*)|(%d+)$')
    local p = job and partition_of(job)
    if not p then kind = 'unreadable_range'
    elseif redis.call('HEXISTS', key('jobs', p, 0), job) == 0 then
      kind = 'range_without_job'
      range = {job, from, to, schedule_version, flags, made}
    end
  else
    local run = entry
    if a_set ~= 'leases' then run = string.match(entry, queue_keys) end
    if not run then kind = 'unreadable_entry'
    else
      local record = redis.call('HGET', key('runs'), run)
      local r = run_parse(record)
      -- A record that cannot be read is for whoever looks at records.
      if not record then kind = a_set == 'leases' and 'lease_without_run' or 'entry_without_run'
      elseif r then
        local right = a_set == 'leases' and r.state == 'R'
          or a_set == 'staged' and r.state == 'Q' and staged_member(run, r.queue_key, r.flags) == entry
          or a_set == 'retries' and r.state == 'T' and run .. '|' .. r.queue_key == entry
        if not right then kind = a_set == 'leases' and 'lease_without_run' or 'entry_without_run' end
      end
    end
  end
  if kind then
    found[#found + 1] = kind
    found[#found + 1] = entry
    gone[#gone + 1] = entry
    if kind == 'unreadable_range' or kind == 'unreadable_entry' then
      bad[#bad + 1] = entry
      bad[#bad + 1] = 'unreadable in ' .. a_set
      events[#events + 1] = 'x'
      events[#events + 1] = a_set .. '\n' .. string.gsub(entry, '\n', ' ') .. '\n' .. at .. '\n'
    elseif range then
      events[#events + 1] = 'k'
      events[#events + 1] = table.concat({range[1], range[2], range[3], '1', 'deleted', at}, '\n')
      range[2] = text(tonumber(range[3]) + 1)
      catchup_event(events, table.concat(range, '|'), at)
    end
  end
end
if a_write == 1 then
  journal('journal', marker.generation, events)
  variadic('HSET', key('quarantine'), bad, 2)
  variadic('ZREM', key(a_set), gone, 1)
end
return {'ok', at, page[1], found}
