#!lua
-- Starts the load of a sealed sale: its records are gone, and the load's token
-- says whose parts may follow. Queue entries stay, and so does their count.
--
-- KEYS  1 sale  2 holds  3 buyers  4 requests
-- ARGV  1 fence  2 token
-- Returns {"ok"}, {"state"} or {"fenced"}

-- A figure is a plain decimal from 0 to 2^53-1; anything else is nil.
local function plain(text)
  if type(text) == "string" and #text <= 16 and (text == "0" or text:find("^[1-9]%d*$")) then
    local number = tonumber(text)
    if number <= 9007199254740991 then return number end
  end
end

local function corrupt(what)
  return redis.error_reply("SECKILL corrupt " .. what)
end

local fence = plain(ARGV[1])
if #ARGV ~= 2 or not fence or ARGV[2] == "" then return redis.error_reply("SECKILL arguments") end
local sale = redis.call("HMGET", KEYS[1], "state", "fence", "queued", "loading")
local seen = plain(sale[2] or "0")
if not seen then return corrupt("fence") end
if fence < seen then return {"fenced"} end
if sale[1] ~= "sealed" then return {"state"} end
if sale[4] == ARGV[2] then return {"ok"} end

redis.call("UNLINK", KEYS[2], KEYS[3], KEYS[4])
-- A count that cannot be read starts over; acknowledging stops it at 0.
local queued = plain(sale[3]) or 0
redis.call("HSET", KEYS[1], "fence", ARGV[1], "loading", ARGV[2], "queued", string.format("%d", queued),
  "total", "0", "available", "0", "held", "0", "sold", "0")
return {"ok"}
