-- nil and the marker {generation, closed_at, recovery_grace_until, load_level} if the shard is open on this very server and the caller knows
-- its generation ("0": any); else the reply to give.
--include server_ids
local function guard(generation)
  local m = redis.call('HMGET', KEYS[1], 'generation', 'state', 'run_id', 'repl_id', 'closed_at', 'recovery_grace_until',
    'load_level')
  local run, repl = server_ids()
  if m[2] ~= 'open' or m[3] ~= run or m[4] ~= repl then return {'closed'} end
  if generation ~= '0' and generation ~= m[1] then return {'stale_generation', m[1]} end
  return nil, {generation = m[1], closed_at = tonumber(m[5]), recovery_grace_until = tonumber(m[6]),
    load_level = tonumber(m[7] or '0')}
end
