#!lua
-- Ends a load: sets the figures and makes the sale ready.
--
-- KEYS  1 sale
-- ARGV  1 fence  2 token  3 state  4 epoch  5 starts in ms  6 ends in ms
--       7 limit  8 total  9 available  10 held  11 sold
--       12 number of segments
-- Returns {"ok"}, {"fenced"}, or {"state"} when another load has taken over

if #ARGV ~= 12 then return redis.error_reply("SECKILL arguments") end
for i = 1, 12 do
  if i ~= 2 and i ~= 3 and not plain(ARGV[i]) then return redis.error_reply("SECKILL arguments") end
end
local sale = redis.call("HMGET", KEYS[1], "state", "loading", "loaded", "fence")
local seen = plain(sale[4] or "0")
if not seen then return corrupt("fence") end
if sale[3] == ARGV[2] then return {"ok"} end
if plain(ARGV[1]) < seen then return {"fenced"} end
if sale[1] ~= "sealed" or sale[2] ~= ARGV[2] then return {"state"} end

redis.call("HSET", KEYS[1], "state", ARGV[3], "epoch", ARGV[4], "starts", ARGV[5], "ends", ARGV[6],
  "limit", ARGV[7], "total", ARGV[8], "available", ARGV[9], "held", ARGV[10], "sold", ARGV[11], "segments", ARGV[12],
  "loaded", ARGV[2])
redis.call("HDEL", KEYS[1], "loading")
return {"ok"}
