-- nil if the shard is in recovery under this very generation on this server (or is open, where `also_open`); else the
-- reply to give.
--include server_ids
local function recovery_guard(generation, also_open)
  local current, state, server, replication = unpack(
    redis.call('HMGET', KEYS[1], 'generation', 'state', 'run_id', 'repl_id'), 1, 4)
  local this_server, this_replication = server_ids()
  if server ~= this_server or replication ~= this_replication then return {'closed'} end
  if current ~= generation then return {'closed'} end
  if state ~= 'recovering' and not (also_open and state == 'open') then return {'closed'} end
  return nil
end
