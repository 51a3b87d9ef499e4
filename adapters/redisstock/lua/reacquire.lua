#!lua
-- Takes units for an order again under a second hold, whatever the gate says,
-- unless the first hold still has its units. A second hold that was released is
-- taken again; a tombstone in its place stays. Queues nothing.
--
-- KEYS  1 sale  2 holds  3 buyers  4 requests
-- ARGV  1 first hold id  2 second hold id  3 buyer  4 quantity
--       5 tail "quantity|buyer|request"  6 request field "buyer|request" or ""
-- Returns {} when the sale is not ready, else {units available before, letter};
-- letters as in grab.lua: A R L S W

local quantity = plain(ARGV[4])
if #ARGV ~= 6 or not quantity or quantity < 1 or quantity > 1000 then
  return redis.error_reply("SECKILL arguments")
end
local sale = redis.call("HMGET", KEYS[1], "state", "available", "held", "limit")
if not sale[1] or sale[1] == "sealed" then return {} end
local available, held, limit = plain(sale[2]), plain(sale[3]), plain(sale[4])
if not available then return corrupt("available") end
if not held then return corrupt("held") end
if not limit then return corrupt("limit") end
local records = redis.call("HMGET", KEYS[2], ARGV[1], ARGV[2])
local first, second = records[1] and records[1]:byte(1), records[2] and records[2]:byte(1)
local has = plain(redis.call("HGET", KEYS[3], ARGV[3]) or "0")
if not has then return corrupt("buyer") end
local asked = redis.call("HGET", KEYS[4], ARGV[6])

for _, mark in pairs({first or 114, second or 114}) do
  if mark ~= 104 and mark ~= 114 and mark ~= 115 then return corrupt("hold") end
end
if second == 114 then
  local had = plain(records[2]:match("^r%d+|(%d+)|[^|]*|[^|]*$"))
  if not had then return corrupt("hold") end
  if had == 0 then return {available, "W"} end
elseif second then
  return {available, "R"}
end
if first and first ~= 114 then return {available, "L"} end
if has + quantity > limit then return {available, "L"} end
if available < quantity then return {available, "S"} end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call("HSET", KEYS[1], "available", string.format("%d", available - quantity),
  "held", string.format("%d", held + quantity))
redis.call("HSET", KEYS[2], ARGV[2], "h" .. string.format("%d", now) .. "|" .. ARGV[5])
redis.call("HSET", KEYS[3], ARGV[3], string.format("%d", has + quantity))
if ARGV[6] ~= "" and not asked then redis.call("HSET", KEYS[4], ARGV[6], ARGV[2]) end
return {available, "A"}
