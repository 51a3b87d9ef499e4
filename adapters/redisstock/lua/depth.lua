#!lua flags=no-writes
-- Reads how much waits in one partition.
--
-- KEYS  1 queue  2 depth
-- ARGV  none
-- Returns {orders, age of the oldest entry in ms}

local orders = plain(redis.call("GET", KEYS[2]) or "0")
if not orders then return corrupt("depth") end
local oldest = redis.call("XRANGE", KEYS[1], "-", "+", "COUNT", "1")[1]
if not oldest then return {0, 0} end -- what was trimmed away may still be counted
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
return {orders, math.max(now - tonumber(oldest[1]:match("^%d+")), 0)}
