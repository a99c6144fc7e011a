-- Looks at a page of run records and repairs what the shard alone can tell: a running one without a lease gets one of full
-- length, so that reap decides; an active one that its job's set does not know is added; one whose turn was lost is staged.
-- MOVES
-- KEYS    shard runs staged retries leases active signals
-- ARGV    generation:text cursor:text count:int lease_ms:int write:int
--         write 0: only finds.
-- REPLY   ok now cursor found:[kind run]... seen:[run record place score]... | closed | stale_generation generation
--         place: '' where the run is as it should be; `queue` where it must be in its queue stream, which the caller looks
--         for; `unreadable`. score: among the active runs of its job, '' for none.
-- COST    4 calls a page and 1 a run; 2 more where an overlap policy decides
--include guard
--include now_ms
--include key
--include text
--include run_parse
--include split_queue_key
--include staged_member
--include partition_of
--include signal_due
--include variadic
--include check_types
--include codes
--include job_of
--include overlap_letter
--include retry_member
local refusal = guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'retries', 'leases'}, {'runs'})
local now = now_ms()
local page = redis.call('HSCAN', key('runs'), a_cursor, 'COUNT', a_count)
local found, seen, leases, staged, added = {}, {}, {}, {}, {}
local function finds(kind, run)
  found[#found + 1] = kind
  found[#found + 1] = run
end
for i = 1, #page[2], 2 do
  local run, packed = page[2][i], page[2][i + 1]
  local record, place, score = run_parse(packed), '', ''
  local unfinished = record
    and (record.state == STATE.QUEUED or record.state == STATE.RUNNING or record.state == STATE.RETRYING)
  if not unfinished or not split_queue_key(record.queue_key) or not partition_of(run) then
    place = 'unreadable'
  else
    local flagged, active = overlap_letter(record.flags), key('active', job_of(run))
    if flagged then score = redis.call('ZSCORE', active, run) or '' end
    if flagged and record.state ~= STATE.QUEUED and score ~= '0' then
      finds('run_not_active', run)
      added[#added + 1] = {active, run}
    end
    if record.state == STATE.RUNNING then
      if not redis.call('ZSCORE', key('leases'), run) then
        finds('run_without_lease', run)
        leases[#leases + 1] = text(now + a_lease_ms)
        leases[#leases + 1] = run
      end
    elseif record.state == STATE.RETRYING then
      if not redis.call('ZSCORE', key('retries'), retry_member(run, record.queue_key)) then place = 'queue' end
    else
      local member = staged_member(run, record.queue_key, record.flags)
      if not redis.call('ZSCORE', key('staged'), member) then
        if score == '' or score == '0' then place = 'queue'
        elseif redis.call('ZRANK', active, run) == 0 then
          -- First of those that wait, and none is active whose end would release it.
          finds('turn_lost', run)
          staged[#staged + 1] = text(now)
          staged[#staged + 1] = member
        end
      end
    end
  end
  for _, part in ipairs({run, packed, place, score}) do seen[#seen + 1] = part end
end
if a_write == 1 then
  variadic('ZADD', key('leases'), leases, 2)
  variadic('ZADD', key('staged'), staged, 2)
  for i = 1, #added do redis.call('ZADD', added[i][1], '0', added[i][2]) end
  if #staged > 0 then signal_due(text(now)) end
end
return {'ok', text(now), page[1], found, seen}
