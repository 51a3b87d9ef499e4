#!lua flags=allow-oom
-- Removes consumers of a group that have nothing pending and have not asked for
-- a while: names of processes that are gone. In one step, because a consumer
-- that is removed takes its pending entries with it.
--
-- KEYS  1 queue
-- ARGV  1 group  2 name of the caller's own consumer  3 idle time in ms
-- Returns the number of consumers removed

local idle = tonumber(ARGV[3])
if #ARGV ~= 3 or not idle then return redis.error_reply("SECKILL arguments") end
local removed = 0
for _, consumer in ipairs(redis.call("XINFO", "CONSUMERS", KEYS[1], ARGV[1])) do
  local fields = {}
  for f = 1, #consumer, 2 do fields[consumer[f]] = consumer[f + 1] end
  if fields.pending == 0 and fields.idle >= idle and fields.name ~= ARGV[2] then
    redis.call("XGROUP", "DELCONSUMER", KEYS[1], ARGV[1], fields.name)
    removed = removed + 1
  end
end
return removed
