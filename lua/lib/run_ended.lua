-- Notes that a run has ended: what depends on it beyond its record. `out`: {freed = job -> runs, payloads}. Reads only; raises
-- where a set that will be written is of another type.
--include codes
--include key
--include job_of
--include overlap_letter
local function run_ended(out, run, flags)
  if flags == '' then return end
  if overlap_letter(flags) then
    local job = job_of(run)
    local list = out.freed[job]
    if not list then
      redis.call('ZCARD', key('active', job))
      redis.call('ZCARD', key('staged'))
      list = {}
      out.freed[job] = list
    end
    list[#list + 1] = run
  end
  if string.find(flags, FLAG.PAYLOAD, 1, true) then
    redis.call('HLEN', key('payloads'))
    out.payloads[#out.payloads + 1] = run
  end
end
