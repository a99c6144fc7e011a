-- A catch-up range as a member of `catchup`.
local function range_pack(range)
  return table.concat({range.job, range.from, range.to, range.schedule_version, range.flags, range.made_at}, '|')
end
