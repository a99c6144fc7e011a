-- A key of this shard; the same shapes as rsched/store/keys.py.
local prefix = string.sub(KEYS[1], 1, -6)
local function key(kind, a, b)
  if b then return prefix .. kind .. ':' .. a .. ':' .. b end
  if a then return prefix .. kind .. ':' .. a end
  return prefix .. kind
end
