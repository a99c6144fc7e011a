-- When a claimed occurrence is to be released: within its job's window, before the next occurrence and before the end.
--include window_offset
local function release_at(run, due, window, following)
  if window == '' then return due end
  local span, last = string.match(window, '^(%d+),?(%d*)$')
  span, last = tonumber(span), tonumber(last)
  if following then span = math.min(span, following - due) end
  if last then span = math.min(span, last - due) end
  return due + window_offset(run, span)
end
