#!lua
-- Queues the intents of holds again, as one stream entry under the current
-- epoch. Only holds in state held are queued.
--
-- KEYS  1 sale  2 holds  3 queue  4 depth
-- ARGV  1 sale id, for the queue entry  2 … n hold ids, at most 1000
-- Returns {"ok", number queued} or {"not_ready"}

if #ARGV < 2 or #ARGV > 1001 then return redis.error_reply("SECKILL arguments") end
local sale = redis.call("HMGET", KEYS[1], "state", "epoch", "queued")
if not sale[1] or sale[1] == "sealed" then return {"not_ready"} end
local queued = plain(sale[3])
if not plain(sale[2]) then return corrupt("epoch") end
if not queued then return corrupt("queued") end
local records = redis.call("HMGET", KEYS[2], unpack(ARGV, 2))
redis.call("XLEN", KEYS[3])
local depth = plain(redis.call("GET", KEYS[4]) or "0")
if not depth then return corrupt("depth") end

local orders, units, count = {}, 0, 0
for i = 1, #ARGV - 1 do
  local record = records[i]
  local mark = record and record:byte(1)
  if record and mark ~= 104 and mark ~= 114 and mark ~= 115 then return corrupt("hold") end
  if mark == 104 then
    local tail, quantity = record:match("^h%d+|((%d+)|[^|]+|[^|]*)$")
    quantity = plain(quantity)
    if not quantity then return corrupt("hold") end
    orders[#orders + 1] = ARGV[i + 1]
    orders[#orders + 1] = tail
    units = units + quantity
    count = count + 1
  end
end

if count > 0 then
  local clock = redis.call("TIME")
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  redis.call("XADD", KEYS[3], "*", "sale", ARGV[1], "epoch", sale[2], "time", string.format("%d", now),
    "units", string.format("%d", units), "count", string.format("%d", count), "orders", table.concat(orders, "\n"))
  redis.call("HSET", KEYS[1], "queued", string.format("%d", queued + units))
  redis.call("SET", KEYS[4], string.format("%d", depth + count))
end
return {"ok", count}
