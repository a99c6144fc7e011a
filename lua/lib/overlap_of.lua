-- The letter of a job's overlap policy; '' where its runs may overlap.
--include extras
local function overlap_of(head)
  if string.byte(head.rest) ~= 124 then return '' end
  return extras(head)[3]
end
