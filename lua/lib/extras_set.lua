-- Puts the optional fields, as `extras` gave them, back into a head; empty ones at the end are left out.
local function extras_set(head, fields)
  local last = 0
  for i = 1, #fields do if fields[i] ~= '' then last = i end end
  local prefix = last > 0 and '|' .. table.concat(fields, '|', 1, last) or ''
  head.rest = prefix .. string.match(head.rest, '\n.*$')
end
