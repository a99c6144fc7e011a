-- Adds a run that a worker is given to the list of replies. `value`: the whole value of its job.
--include codes
--include key
--include text
local function fetch_reply(replies, run, record, value)
  local n = #replies
  replies[n + 1], replies[n + 2], replies[n + 3] = run, text(record.attempt), record.fence
  replies[n + 4], replies[n + 5], replies[n + 6] = record.due_at, record.flags, value
  replies[n + 7] = string.find(record.flags, FLAG.PAYLOAD, 1, true) and redis.call('HGET', key('payloads'), run) or ''
end
