-- Appends events (kind, payload, kind, payload ...) to a journal stream and gives the last entry's id, nil for none.
--include key
local function journal(stream, generation, events)
  local id = nil
  for i = 1, #events, 4000 do
    id = redis.call('XADD', key(stream), generation .. '-*', unpack(events, i, math.min(i + 3999, #events)))
  end
  return id
end
