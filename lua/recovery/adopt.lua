-- A worker says which attempts it holds after the shard was opened, so that Redis learns leases it may have lost.
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
local m = redis.call('HMGET', KEYS[1], 'generation', 'state', 'run_id', 'repl_id', 'lost', 'fence_seen')
local server, replication = server_ids()
if m[3] ~= server or m[4] ~= replication or (m[2] ~= 'open' and m[2] ~= 'recovering') then return {'closed'} end
check_types({'leases', 'staged', 'retries'}, {'workers'})
local now = now_ms()
local at, lease_end = text(now), text(now + a_lease_ms)
local tags, events, records, leases, taken, waiting, open = {}, {}, {}, {}, {}, {}, {}
for i = group_at, #ARGV, group_width do
  local run, attempt, fence = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local p, job = partition_of(run), string.sub(run, 1, 15)
  local head = head_parse(redis.call('HGET', key('jobs', p, 0), job))
  local r = run_parse(redis.call('HGET', key('runs'), run))
  -- Before what was lost is back, a run that is not there may be.
  if not r and m[2] == 'recovering' and m[5] == '1' then return {'closed'} end
  -- A run that is not there has ended, unless Redis lost writes: also ones that nobody has recorded, as an attempt tells of
  -- which it never heard.
  if not r and (not head or (m[5] ~= '1' and tonumber(fence) <= tonumber(m[6] or fence))) then tags[#tags + 1] = 'missing'
  elseif r and tonumber(r.fence) > tonumber(fence) then tags[#tags + 1] = 'stale_fence'
  elseif r and r.fence == fence and r.state ~= 'R' then tags[#tags + 1] = 'stale_fence'
  else
    tags[#tags + 1] = 'ok'
    if not r then
      -- When it was due is not known, but it was not before the instant in its key.
      local due = text(math.min(tonumber(string.match(run, ':m?%-?(%d+)') or at), now))
      r = {revision = run_first_revision(head.schedule_version), queue_key = head.queue_key, schedule_version = head.schedule_version, claimed = at, due = due, started = at,
        flags = (string.find(run, ':m-', 1, true) and 'M' or (head.kind == 'o' and 'L' or '')) .. overlap_of(head)}
    end
    if r.fence ~= fence then
      taken[#taken + 1] = staged_member(run, r.queue_key, r.flags)
      waiting[#waiting + 1] = run .. '|' .. r.queue_key
      if string.find(r.flags, '%l') then
        redis.call('ZCARD', key('active', job))
        open[#open + 1] = {job, run}
      end
      r.state, r.revision, r.attempt, r.fence, r.worker = 'R', r.revision + 1, attempt, fence, a_worker
      local record = run_pack(r)
      events[#events + 1] = 'r'
      events[#events + 1] = run .. '\n' .. record .. '\n' .. at .. '\n'
      records[#records + 1] = run
      records[#records + 1] = record
    end
    leases[#leases + 1] = lease_end
    leases[#leases + 1] = run
  end
end
journal('journal', m[1], events)
variadic('HSET', key('runs'), records, 2)
variadic('ZADD', key('leases'), leases, 2)
variadic('ZREM', key('staged'), taken, 1)
variadic('ZREM', key('retries'), waiting, 1)
for i = 1, #open do redis.call('ZADD', key('active', open[i][1]), '0', open[i][2]) end
redis.call('SREM', key('unconfirmed'), a_worker)
redis.call('HSET', key('workers'), a_worker, at .. '|' .. a_queues .. '|' .. text(a_lease_ms))
return {'ok', at, lease_end, tags}
