-- The letter of the overlap policy that a run is judged by, nil where its job's runs may overlap.
local function overlap_letter(flags)
  return string.match(flags, '%l')
end
