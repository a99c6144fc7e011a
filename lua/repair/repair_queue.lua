-- Looks at a page of a queue stream: entries of no waiting run are dropped, and a team that has work is ready.
-- MOVES
-- KEYS    shard q ready virtual runs quarantine signals
-- ARGV    generation:text queue_key:text after:text count:int write:int
--         after: '-', or the last entry of the page before. write 0: only finds.
-- REPLY   ok now last found:[kind entry]... runs:[run]... | closed | stale_generation generation
--         last: of the page, '' at the end. runs: those that wait in it.
-- COST    5 calls and 1 an entry
--include guard
--include now_ms
--include key
--include text
--include split_queue_key
--include run_parse
--include fetch_all
--include variadic
--include check_types
--include check_queue_types
--include codes
--include team_start
local refusal = guard(a_generation)
if refusal then return refusal end
check_types({}, {'runs', 'quarantine'})
check_queue_types({[a_queue_key] = true})
local now = text(now_ms())
local stream, queue, team = key('q', a_queue_key), split_queue_key(a_queue_key)
local ready = key('ready', queue)
local entries = redis.call('XRANGE', stream, a_after == '-' and '-' or '(' .. a_after, '+', 'COUNT', a_count)
local found, runs, gone, picks = {}, {}, {}, {}
for i = 1, #entries do picks[i] = entries[i][2][2] or '' end
local values = fetch_all(key('runs'), picks)
for i = 1, #entries do
  local record = run_parse(values[i])
  if not values[i] or (record and record.state ~= STATE.QUEUED and record.state ~= STATE.RETRYING) then
    found[#found + 1] = 'queued_without_run'
    found[#found + 1] = picks[i]
    gone[#gone + 1] = entries[i][1]
  else
    runs[#runs + 1] = picks[i]
  end
end
local left = redis.call('XLEN', stream) - #gone
local waits = redis.call('ZSCORE', ready, team)
if left > 0 and not waits then
  found[#found + 1] = 'team_not_ready'
  found[#found + 1] = a_queue_key
end
if a_write == 1 then
  variadic('XDEL', stream, gone, 1)
  if left <= 0 then
    redis.call('DEL', stream)
    local rest = 0
    for priority = 0, 2 do rest = rest + redis.call('EXISTS', key('q', queue .. ':' .. team .. ':' .. priority)) end
    if rest == 0 then redis.call('ZREM', ready, team) end
  elseif not waits then
    redis.call('ZADD', ready, team_start(queue, team), team)
    redis.call('PUBLISH', key('signals'), 'work ' .. queue)
  end
end
return {'ok', now, #entries == a_count and entries[#entries][1] or '', found, runs}
