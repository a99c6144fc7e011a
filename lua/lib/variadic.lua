-- One command over a long list, in calls that unpack can carry. `width`: values that belong together.
local function variadic(command, name, list, width)
  local step = 4000 - 4000 % width
  for i = 1, #list, step do
    redis.call(command, name, unpack(list, i, math.min(i + step - 1, #list)))
  end
end
