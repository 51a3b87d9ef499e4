#!lua
-- Starts the load of a sealed sale: its records are gone, and the load's token
-- says whose parts may follow. Queue entries stay and are counted anew, of all
-- sales; a queue that is no stream has none and is removed.
--
-- KEYS  1 sale  2 holds  3 buyers  4 requests  5 queue  6 depth
-- ARGV  1 fence  2 token  3 sale id, as queue entries name it
-- Returns {"ok"}, {"state"} or {"fenced"}

local fence = plain(ARGV[1])
if #ARGV ~= 3 or not fence or ARGV[2] == "" then return redis.error_reply("SECKILL arguments") end
local sale = redis.call("HMGET", KEYS[1], "state", "fence", "loading")
local seen = plain(sale[2] or "0")
if not seen then return corrupt("fence") end
if fence < seen then return {"fenced"} end
if sale[1] ~= "sealed" then return {"state"} end
if sale[3] == ARGV[2] then return {"ok"} end
local kind = redis.call("TYPE", KEYS[5]).ok
if kind ~= "stream" and kind ~= "none" then redis.call("UNLINK", KEYS[5]) end
local queued, depth = queuedUnits(KEYS[5], ARGV[3])

redis.call("UNLINK", KEYS[2], KEYS[3], KEYS[4])
-- Of the sale itself only what is set here stays: loans and edits are part of the load.
redis.call("UNLINK", KEYS[1])
if depth > 0 then redis.call("SET", KEYS[6], string.format("%d", depth)) else redis.call("UNLINK", KEYS[6]) end
redis.call("HSET", KEYS[1], "state", "sealed", "fence", ARGV[1], "loading", ARGV[2], "queued", string.format("%d", queued),
  "total", "0", "available", "0", "held", "0", "sold", "0")
return {"ok"}
