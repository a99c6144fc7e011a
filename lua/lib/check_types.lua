-- Raises before anything is written if a key that will be written is of another type. `zsets`, `hashes`: names of kinds.
--include key
local function check_types(zsets, hashes)
  for i = 1, #zsets do redis.call('ZCARD', key(zsets[i])) end
  for i = 1, #hashes do redis.call('HLEN', key(hashes[i])) end
end
