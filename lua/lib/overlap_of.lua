-- The letter of the overlap policy that a run is judged by at its release: of its job's head, or in its own flags; '' where
-- runs may overlap.
--include extras
local function overlap_of(head)
  if string.byte(head.rest) ~= 124 then return '' end
  return extras(head)[3]
end
