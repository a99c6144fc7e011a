-- (run id, replication id) of the server that runs this script: what tells a restart or a failover.
local function server_ids()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local repl = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
  return run or '', repl or ''
end
