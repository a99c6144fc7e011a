-- Collects the event of a worker that came. `queues`: their names, with commas between.
--include codes
local function event_worker(events, worker, queues, at)
  events[#events + 1] = EVENT.WORKER
  events[#events + 1] = worker .. '\n' .. queues .. '\n' .. at
end
