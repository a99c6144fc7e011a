-- HMGET over a list of any length; missing fields are false.
local function fetch_all(name, list)
  if #list == 0 then return {} end
  if #list <= 4000 then return redis.call('HMGET', name, unpack(list)) end
  local out = {}
  for i = 1, #list, 4000 do
    local part = redis.call('HMGET', name, unpack(list, i, math.min(i + 3999, #list)))
    for j = 1, #part do out[i + j - 1] = part[j] end
  end
  return out
end
