-- (run id, replication id) of the server that runs this script: what tells a restart or a failover.
local function server_ids()
  local server = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
  return server or '', replication or ''
end
