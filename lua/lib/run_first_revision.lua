-- The revision of a new run: a later schedule version outranks all revisions of an earlier one, so that a run key which was
-- withdrawn and is claimed again supersedes its own record in the ledger.
local function run_first_revision(schedule_version)
  return schedule_version * 1048576 + 1
end
