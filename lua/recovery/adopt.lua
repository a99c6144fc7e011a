-- Takes from a worker the attempts that are active in it after the shard's recovery, so that Redis learns leases it may have
-- lost.
-- MOVES   none -> RUNNING, QUEUED -> RUNNING, RETRYING -> RUNNING, RUNNING -> RUNNING
-- KEYS    shard active unconfirmed runs leases staged retries jobs workers journal
-- ARGV    generation:text worker:text lease_ms:int queues:text items:[run:text attempt:int fence:text]
-- REPLY   ok now lease_end tags:[tag]... (ok, stale_fence, missing) | closed
-- COST    4 calls a run
-- FLAGS   allow-oom
--include key
--include server_ids
--include now_ms
--include journal
--include run_parse
--include run_pack
--include run_first_revision
--include head_parse
--include partition_of
--include variadic
--include check_types
--include staged_member
--include overlap_of
--include codes
--include job_of
--include overlap_letter
--include retry_member
--include text
--include event_run
local generation, state, server, replication, lost, fence_seen = unpack(
  redis.call('HMGET', KEYS[1], 'generation', 'state', 'run_id', 'repl_id', 'lost', 'fence_seen'), 1, 6)
local this_server, this_replication = server_ids()
if server ~= this_server or replication ~= this_replication then return {'closed'} end
if state ~= 'open' and state ~= 'recovering' then return {'closed'} end
check_types({'leases', 'staged', 'retries'}, {'workers'})
local now = now_ms()
local at, lease_end = text(now), text(now + a_lease_ms)
local tags, events, records, leases, staged, retries, active = {}, {}, {}, {}, {}, {}, {}
for i = group_at, #ARGV, group_width do
  local run, attempt, fence = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local partition, job = partition_of(run), job_of(run)
  local head = head_parse(redis.call('HGET', key('jobs', partition, 0), job))
  local record = run_parse(redis.call('HGET', key('runs'), run))
  -- Before what was lost is back, a run that is not there may be.
  if not record and state == 'recovering' and lost == '1' then return {'closed'} end
  -- A run that is not there has ended, unless Redis lost writes: also ones that nobody has recorded, as an attempt tells of
  -- which it never heard.
  if not record and (not head or (lost ~= '1' and tonumber(fence) <= tonumber(fence_seen or fence))) then
    tags[#tags + 1] = 'missing'
  elseif record and tonumber(record.fence) > tonumber(fence) then tags[#tags + 1] = 'stale_fence'
  elseif record and record.fence == fence and record.state ~= STATE.RUNNING then tags[#tags + 1] = 'stale_fence'
  else
    tags[#tags + 1] = 'ok'
    if not record then
      -- When it was due is not known, but it was not before the instant in its key.
      local due = text(math.min(tonumber(string.match(run, ':m?%-?(%d+)') or at), now))
      local last = head.kind == SCHEDULE.INSTANT and FLAG.LAST or ''
      record = {
        revision = run_first_revision(head.schedule_version),
        queue_key = head.queue_key,
        schedule_version = head.schedule_version,
        claimed_at = at,
        due_at = due,
        started_at = at,
        flags = (string.find(run, ':m-', 1, true) and FLAG.MANUAL or last) .. overlap_of(head),
      }
    end
    if record.fence ~= fence then
      staged[#staged + 1] = staged_member(run, record.queue_key, record.flags)
      retries[#retries + 1] = retry_member(run, record.queue_key)
      if overlap_letter(record.flags) then
        redis.call('ZCARD', key('active', job))
        active[#active + 1] = {job, run}
      end
      record.state, record.revision = STATE.RUNNING, record.revision + 1
      record.attempt, record.fence, record.worker = attempt, fence, a_worker
      local packed = run_pack(record)
      event_run(events, run, packed, at, '')
      records[#records + 1] = run
      records[#records + 1] = packed
    end
    leases[#leases + 1] = lease_end
    leases[#leases + 1] = run
  end
end
journal('journal', generation, events)
variadic('HSET', key('runs'), records, 2)
variadic('ZADD', key('leases'), leases, 2)
variadic('ZREM', key('staged'), staged, 1)
variadic('ZREM', key('retries'), retries, 1)
for i = 1, #active do redis.call('ZADD', key('active', active[i][1]), '0', active[i][2]) end
redis.call('SREM', key('unconfirmed'), a_worker)
redis.call('HSET', key('workers'), a_worker, at .. '|' .. a_queues .. '|' .. text(a_lease_ms))
return {'ok', at, lease_end, tags}
