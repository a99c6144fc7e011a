-- nil if the shard is being opened under this very generation on this server (or is open, where `also_open`); else the
-- reply to give.
--include server_ids
local function recovery_guard(generation, also_open)
  local m = redis.call('HMGET', KEYS[1], 'generation', 'state', 'run_id', 'repl_id')
  local server, replication = server_ids()
  if m[3] ~= server or m[4] ~= replication then return {'closed'} end
  if m[1] ~= generation then return {'closed'} end
  if m[2] ~= 'recovering' and not (also_open and m[2] == 'open') then return {'closed'} end
  return nil
end
