-- A run's member in `retries`.
local function retry_member(run, queue_key)
  return run .. '|' .. queue_key
end
