-- Adds computed occurrences of a schedule to its occurrence cache, keeping it contiguous.
-- MOVES
-- KEYS    shard occurrences
-- ARGV    generation:text schedule:text after:int ended:int items:[at:int]
--         items: all occurrences after `after`, in order, up to the last given. ended 1: none follow.
-- REPLY   ok now count | closed | stale_generation generation
-- COST    5 calls
--include guard
--include now_ms
--include key
--include text
--include variadic
local refusal = guard(a_generation)
if refusal then return refusal end
local cache = key('occurrences', a_schedule)
local low = redis.call('ZSCORE', cache, 'from')
local high = redis.call('ZRANGE', cache, '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
local first, last = a_after, #ARGV < group_at and a_after or tonumber(ARGV[#ARGV])
local keeps = false
if low and high[2] then
  low = tonumber(low)
  keeps = first <= tonumber(high[2]) and (a_ended == 1 or last >= low)
end
local entries = {}
for i = group_at, #ARGV do
  entries[#entries + 1] = ARGV[i]
  entries[#entries + 1] = ARGV[i]
end
if a_ended == 1 then
  entries[#entries + 1] = '9007199254740991'
  entries[#entries + 1] = 'end'
end
entries[#entries + 1] = text(keeps and math.min(low, first) or first)
entries[#entries + 1] = 'from'
if not keeps then redis.call('DEL', cache) end
variadic('ZADD', cache, entries, 2)
local count = redis.call('ZCARD', cache)
if count > 2048 then
  local cut = redis.call('ZRANGE', cache, count - 1025, count - 1025, 'WITHSCORES')
  redis.call('ZREMRANGEBYRANK', cache, 0, count - 1025)
  redis.call('ZADD', cache, cut[2], 'from')
end
redis.call('PEXPIRE', cache, 86400000)
return {'ok', text(now_ms()), text(count)}
