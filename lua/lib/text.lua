-- An integer as text: tostring loses digits past 14.
local function text(number)
  return string.format('%.0f', number)
end
