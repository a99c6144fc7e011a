-- A run's member in `staged`: with the letter of its overlap policy, so that release need not look at each record.
--include overlap_letter
local function staged_member(run, queue_key, flags)
  local letter = overlap_letter(flags)
  return run .. '|' .. queue_key .. (letter and '|' .. letter or '')
end
