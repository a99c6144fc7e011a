-- The optional fields of a head as text, '' where there is none: paused_from, window, overlap, until, missed,
-- note, keeps.
local function extras(head)
  local out = {}
  for field in string.gmatch(string.match(head.rest, '^([^\n]*)'), '|([^|]*)') do out[#out + 1] = field end
  for i = #out + 1, 7 do out[i] = '' end
  return out
end
