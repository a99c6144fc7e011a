-- The letter of a job's overlap policy; '' where its runs may overlap.
--include has_optional
--include optional_parse
local function overlap_of(head)
  if not has_optional(head) then return '' end
  return optional_parse(head).overlap
end
