#!lua
-- Sets held, sold, available and every buyer's units to what the records say,
-- and queued and the partition's depth to what the queue holds, if the account
-- still is as the caller saw it.
--
-- KEYS  1 sale  2 holds  3 buyers  4 queue  5 depth
-- ARGV  1 fence  2 epoch  3 total  4 available  5 held  6 sold
--       7 sale id, as queue entries name it
-- Returns {"not_ready"}, {"fenced"}, {"conflict"}, {"unbalanced"} when the
-- records hold more units than the total, or as audit.lua does, with the
-- figures that are set now

local fence = plain(ARGV[1])
if #ARGV ~= 7 or not fence then return redis.error_reply("SECKILL arguments") end
local names = {"epoch", "total", "available", "held", "sold"}
local state = redis.call("HGET", KEYS[1], "state")
if not state or state == "sealed" then return {"not_ready"} end
local seen = plain(redis.call("HGET", KEYS[1], "fence") or "0")
if not seen then return corrupt("fence") end
if fence < seen then return {"fenced"} end
local sale = redis.call("HMGET", KEYS[1], unpack(names))
for i = 1, #names do
  if not plain(sale[i]) then return corrupt(names[i]) end
  if sale[i] ~= ARGV[i + 1] then return {"conflict"} end
end
local total = plain(sale[2])

local units = {[104] = 0, [114] = 0, [115] = 0}
local counted = {}
local records = redis.call("HGETALL", KEYS[2])
for i = 2, #records, 2 do
  local quantity, buyer = records[i]:match("^[hrs]%d+|(%d+)|([^|]*)|[^|]*$")
  quantity = plain(quantity)
  if not quantity then return corrupt("hold") end
  local mark = records[i]:byte(1)
  units[mark] = units[mark] + quantity
  if mark ~= 114 then counted[buyer] = (counted[buyer] or 0) + quantity end
end
local held, sold = units[104], units[115]
if held + sold > total then return {"unbalanced"} end

local queued, depth = queuedUnits(KEYS[4], ARGV[7])

-- A buyer's figure that is no number is replaced without being read as one.
local gone, changed = {}, {}
local buyers = redis.call("HGETALL", KEYS[3])
for i = 1, #buyers, 2 do
  local count = counted[buyers[i]]
  if not count then
    gone[#gone + 1] = buyers[i]
  elseif string.format("%d", count) == buyers[i + 1] then
    counted[buyers[i]] = nil
  end
end
for buyer, count in pairs(counted) do
  changed[#changed + 1] = buyer
  changed[#changed + 1] = string.format("%d", count)
end

if depth > 0 then redis.call("SET", KEYS[5], string.format("%d", depth)) else redis.call("UNLINK", KEYS[5]) end
redis.call("HSET", KEYS[1], "fence", ARGV[1], "held", string.format("%d", held), "sold", string.format("%d", sold),
  "available", string.format("%d", total - held - sold), "queued", string.format("%d", queued),
  "frees", string.format("%d", (plain(redis.call("HGET", KEYS[1], "frees") or "0") or 0) + 1))
for i = 1, #gone, 1000 do
  redis.call("HDEL", KEYS[3], unpack(gone, i, math.min(i + 999, #gone)))
end
for i = 1, #changed, 1000 do
  redis.call("HSET", KEYS[3], unpack(changed, i, math.min(i + 999, #changed)))
end
return {"ok", plain(sale[1]), state, total, total - held - sold, held, sold, queued, held, sold, queued}
