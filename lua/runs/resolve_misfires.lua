-- Applies the misfire policies of jobs whose occurrences are too late: one run, a catch-up range or none, the rest on record as
-- skipped, and the due time past now; each only if the job is still due as the caller saw it.
-- MOVES   none -> QUEUED, QUEUED -> QUEUED
-- KEYS    shard unconfirmed due heads jobs body runs staged catchup journal signals
-- ARGV    generation:text items:[job:text schedule_version:int due:text next:text run_at:text first:text last:text count:int
--         from:text to:text]
--         next '': none follows. run_at: the occurrence to run, '' for none. first, last, count: those skipped.
--         from, to: the catch-up range, '' for none.
-- REPLY   ok now tags:[tag]... (ok, stale) | closed | stale_generation generation
-- COST    8 calls an item
--include guard
--include now_ms
--include journal
--include job_read
--include head_pack
--include job_write
--include due_set
--include run_create
--include partition_of
--include variadic
--include check_types
--include check_job_types
--include overlap_of
--include run_reschedule
--include run_parse
--include in_recovery_grace
--include late_due
--include codes
--include event_catchup
--include event_job
--include event_skip
--include key
--include range_pack
--include text
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({'staged', 'catchup', 'heads'}, {'runs'})
local now = now_ms()
local at = text(now)
local closed = in_recovery_grace(marker, now) and marker.closed_at
local out, tags, writes, ranges = {events = {}, records = {}, staged = {}}, {}, {}, {}
for i = group_at, #ARGV, group_width do
  local job, schedule_version, due = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local following, run_at = ARGV[i + 3], ARGV[i + 4]
  local count, from, to = tonumber(ARGV[i + 7]), ARGV[i + 8], ARGV[i + 9]
  local partition = partition_of(job)
  check_job_types(partition)
  local head = job_read(partition, job)
  local score = redis.call('ZSCORE', key('due', partition, 0), job)
  if not head or head.state ~= JOB_STATE.ACTIVE or head.schedule_version ~= schedule_version
      or not score or text(tonumber(score)) ~= due then
    tags[#tags + 1] = 'stale'
  else
    tags[#tags + 1] = 'ok'
    local value = nil
    if run_at ~= '' then
      local run, last = job .. ':' .. run_at, following == '' and FLAG.LAST or ''
      local old = run_parse(redis.call('HGET', key('runs'), run))
      if old then run_reschedule(out, run, old, head, at, last)
      else run_create(out, run, head, late_due(closed, run_at, now), at, last, overlap_of(head)) end
    end
    if count > 0 then
      event_skip(out.events, job, ARGV[i + 5], ARGV[i + 6], ARGV[i + 7], 'misfire', at)
    end
    if to ~= '' then
      local range = {job = job, from = from, to = to, schedule_version = text(schedule_version),
        flags = following == '' and FLAG.LAST or '', made_at = at}
      ranges[#ranges + 1] = at
      ranges[#ranges + 1] = range_pack(range)
      event_catchup(out.events, range, at)
    elseif following == '' and run_at == '' then
      head.state = JOB_STATE.COMPLETED
      value = head_pack(head)
      event_job(out.events, job, value)
    end
    writes[#writes + 1] = {partition = partition, job = job, due = following, value = value}
  end
end
journal('journal', marker.generation, out.events)
variadic('HSET', key('runs'), out.records, 2)
variadic('ZADD', key('staged'), out.staged, 2)
variadic('ZADD', key('catchup'), ranges, 2)
for _, write in ipairs(writes) do
  if write.value then job_write(write.partition, write.job, write.value) end
  due_set(write.partition, write.job, write.due)
end
return {'ok', at, tags}
