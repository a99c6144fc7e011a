-- A key of this shard; the same shapes as rsched/store/keys.py.
local prefix = string.sub(KEYS[1], 1, -6)
local function key(kind, name, part)
  if part then return prefix .. kind .. ':' .. name .. ':' .. part end
  if name then return prefix .. kind .. ':' .. name end
  return prefix .. kind
end
