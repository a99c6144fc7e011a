-- The job's value with a changed head.
--include text
local function head_pack(h)
  return '1|' .. h.state .. '|' .. text(h.version) .. '|' .. text(h.schedule_version) .. '|' .. text(h.schedule_changed_at) .. '|' .. h.kind
    .. '|' .. h.arg .. '|' .. h.misfire .. '|' .. text(h.grace) .. '|' .. h.queue_key .. h.rest
end
