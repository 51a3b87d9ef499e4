#!lua flags=allow-oom
-- Changes the gate of a sale, for the very next grab.
--
-- KEYS  1 sale
-- ARGV  1 fence  2 state  3 starts in ms  4 ends in ms  5 limit
-- Returns {"ok"}, {"not_ready"} or {"fenced"}

local fence = plain(ARGV[1])
if #ARGV ~= 5 or not fence or not plain(ARGV[3]) or not plain(ARGV[4]) or not plain(ARGV[5]) then
  return redis.error_reply("SECKILL arguments")
end
local sale = redis.call("HMGET", KEYS[1], "state", "fence")
if not sale[1] or sale[1] == "sealed" then return {"not_ready"} end
local seen = plain(sale[2] or "0")
if not seen then return corrupt("fence") end
if fence < seen then return {"fenced"} end
redis.call("HSET", KEYS[1], "fence", ARGV[1], "state", ARGV[2], "starts", ARGV[3], "ends", ARGV[4], "limit", ARGV[5])
return {"ok"}
