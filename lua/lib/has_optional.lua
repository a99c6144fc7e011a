-- Whether a job's head has optional fields, which most have not.
local function has_optional(head)
  return string.byte(head.rest) == 124
end
