-- nil and the marker {generation, closed_at, recovery_grace_until, load_level} if the shard is open on this very server and
-- the caller knows its generation ("0": any); else the reply to give.
--include server_ids
local function guard(generation)
  local marker = redis.call('HMGET', KEYS[1], 'generation', 'state', 'run_id', 'repl_id', 'closed_at', 'recovery_grace_until',
    'load_level')
  local current, state, server, replication, closed_at, recovery_grace_until, load_level = unpack(marker, 1, 7)
  local this_server, this_replication = server_ids()
  if state ~= 'open' or server ~= this_server or replication ~= this_replication then return {'closed'} end
  if generation ~= '0' and generation ~= current then return {'stale_generation', current} end
  return nil, {generation = current, closed_at = tonumber(closed_at), recovery_grace_until = tonumber(recovery_grace_until),
    load_level = tonumber(load_level or '0')}
end
