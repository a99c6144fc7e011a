-- Writes what `complete` prepared.
--include job_write
local function complete_write(prepared)
  for i = 1, #prepared do job_write(prepared[i][1], prepared[i][2], prepared[i][3]) end
end
