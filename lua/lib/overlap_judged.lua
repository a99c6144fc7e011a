-- By place, whether an overlap policy decides about each of these members of `set`, staged or retries: of a staged run its member
-- tells, of a retry its record.
--include codes
--include key
--include fetch_all
--include run_parse
--include overlap_letter
local function overlap_judged(members, set)
  local runs, judged = {}, {}
  for i, member in ipairs(members) do
    runs[i] = string.match(member, '^[^|]*')
    local letter = string.match(member, '|(%l)$')
    judged[i] = letter and letter ~= OVERLAP.ANYWAY
  end
  local values = set == 'retries' and fetch_all(key('runs'), runs) or {}
  for i = 1, #values do
    local record = run_parse(values[i])
    local letter = record and overlap_letter(record.flags)
    judged[i] = letter and letter ~= OVERLAP.ANYWAY
  end
  return judged
end
