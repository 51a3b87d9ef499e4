#!lua flags=allow-oom
-- Removes every key of a sale, its fence included.
--
-- KEYS  1 sale  2 holds  3 buyers  4 requests
-- ARGV  1 fence
-- Returns {"ok"}, {"fenced"} or {"has_holds"}

local fence = plain(ARGV[1])
if #ARGV ~= 1 or not fence then return redis.error_reply("SECKILL arguments") end
local sale = redis.call("HMGET", KEYS[1], "held", "queued", "fence")
local held, queued, seen = plain(sale[1] or "0"), plain(sale[2] or "0"), plain(sale[3] or "0")
if not held then return corrupt("held") end
if not queued then return corrupt("queued") end
if not seen then return corrupt("fence") end
if fence < seen then return {"fenced"} end
if held > 0 or queued > 0 then return {"has_holds"} end
redis.call("UNLINK", KEYS[1], KEYS[2], KEYS[3], KEYS[4])
return {"ok"}
