-- A run record as text. fence, claimed, due and started stay text as they came: they are copied more than computed.
--include text
local function run_pack(r)
  return '1|' .. r.state .. '|' .. text(r.revision) .. '|' .. r.queue_key .. '|' .. r.schedule_version .. '|' .. r.attempt .. '|' .. r.fence
    .. '|' .. r.worker .. '|' .. r.claimed .. '|' .. r.due .. '|' .. r.started .. '|' .. r.flags
end
