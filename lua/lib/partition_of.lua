-- The partition of a job or run id: its first two characters after `j_`.
local digits = '0123456789abcdefghjkmnpqrstvwxyz'
local function partition_of(id)
  local hi = string.find(digits, string.sub(id, 3, 3), 1, true)
  local lo = string.find(digits, string.sub(id, 4, 4), 1, true)
  if not hi or not lo then return nil end
  return (hi - 1) * 32 + lo - 1
end
