-- Writes a team's calendar of exclusions, over the version the caller has seen; the jobs that use it are to be refreshed.
-- MOVES
-- KEYS    shard calendars refreshes definitions
-- ARGV    generation:text team:text name:text expect:int body:text
--         expect: its present version, 0 for none. body: '' to delete it.
-- REPLY   ok now journal_id version | missing now | conflict now version | closed | stale_generation generation
-- COST    4 calls
--include guard
--include now_ms
--include journal
--include key
--include text
--include check_types
local refusal, marker = guard(a_generation)
if refusal then return refusal end
check_types({}, {'calendars', 'refreshes'})
local now = text(now_ms())
local field = a_team .. '/' .. a_name
local version, body = string.match(redis.call('HGET', key('calendars'), field) or '', '^(%d+)\n(.*)$')
version = tonumber(version or '0')
if a_body == '' and (body or '') == '' then return {'missing', now} end
if version ~= a_expect and not ((body or '') == '' and a_expect == 0) then return {'conflict', now, text(version)} end
local next_version = text(version + 1)
local id = journal('definitions', marker.generation,
  {'c', table.concat({a_team, a_name, next_version, now, a_body}, '\n')})
-- A deleted one keeps its version, so that a late write cannot bring it back.
redis.call('HSET', key('calendars'), field, next_version .. '\n' .. a_body)
redis.call('HSET', key('refreshes'), field .. '/' .. next_version, now)
return {'ok', now, id, next_version}
