#!lua
-- Makes a sale not ready, so that nothing changes while it is loaded. Forced,
-- it also seals a sale whose figures cannot be read any more, or that is not even
-- a hash.
--
-- KEYS  1 sale
-- ARGV  1 fence  2 "1" to force
-- Returns {"ok"}, {"fenced"} or {"has_holds"}

local fence = plain(ARGV[1])
if #ARGV ~= 2 or not fence then return redis.error_reply("SECKILL arguments") end
if ARGV[2] == "1" and redis.call("TYPE", KEYS[1]).ok ~= "hash" then redis.call("UNLINK", KEYS[1]) end
local sale = redis.call("HMGET", KEYS[1], "state", "held", "queued", "fence")
local seen = plain(sale[4] or "0")
if not seen and ARGV[2] == "1" then seen = 0 end
if not seen then return corrupt("fence") end
if fence < seen then return {"fenced"} end
if sale[1] and ARGV[2] ~= "1" then
  local held, queued = plain(sale[2] or "0"), plain(sale[3] or "0")
  if not held then return corrupt("held") end
  if not queued then return corrupt("queued") end
  if held > 0 or queued > 0 then return {"has_holds"} end
end
redis.call("HSET", KEYS[1], "state", "sealed", "fence", ARGV[1])
return {"ok"}
