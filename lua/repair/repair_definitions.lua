-- Journals definitions again that the ledger has missed, each only in the version that the caller saw.
-- MOVES
-- KEYS    shard jobs body definitions
-- ARGV    generation:text items:[job:text version:int]
-- REPLY   ok now jobs:[job]... | closed | stale_generation generation
-- COST    2 calls a job
--include guard
--include now_ms
--include journal
--include job_read
--include partition_of
--include text
--include event_job
local refusal, marker = guard(a_generation)
if refusal then return refusal end
local events, sent = {}, {}
for i = group_at, #ARGV, group_width do
  local job = ARGV[i]
  local head, whole = job_read(partition_of(job), job)
  if head and head.version == tonumber(ARGV[i + 1]) then
    event_job(events, job, whole)
    sent[#sent + 1] = job
  end
end
journal('definitions', marker.generation, events)
return {'ok', text(now_ms()), sent}
