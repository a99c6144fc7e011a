-- How long (ms) after its occurrence a run starts that may start within `span` ms: fixed by its run key and evenly spread,
-- as tests/core/window.py has it, too.
local function window_offset(run, span)
  if span <= 0 then return 0 end
  return tonumber(string.sub(redis.sha1hex(run), 1, 8), 16) % span
end
