#!lua flags=no-writes
-- Reads how much waits in one partition.
--
-- KEYS  1 queue  2 depth
-- ARGV  none
-- Returns {orders, age of the oldest entry in ms}

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

local orders = plain(redis.call("GET", KEYS[2]) or "0")
if not orders then return corrupt("depth") end
local oldest = redis.call("XRANGE", KEYS[1], "-", "+", "COUNT", "1")[1]
if not oldest then return {orders, 0} end
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
return {orders, math.max(now - tonumber(oldest[1]:match("^%d+")), 0)}
