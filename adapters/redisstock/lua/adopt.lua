#!lua
-- Records the hold of a ledger order that is not known here, or is known as
-- released, whatever the buyer's limit and the gate say.
--
-- KEYS  1 sale  2 holds  3 buyers  4 requests
-- ARGV  1 fence  2 hold id  3 record  4 quantity  5 buyer
--       6 request field "buyer|request" or ""
-- Returns {"ok", units deducted}, {"not_ready"}, {"fenced"}, or {"conflict"}
-- when too few units are available

local fence, quantity = plain(ARGV[1]), plain(ARGV[4])
if #ARGV ~= 6 or not fence or not quantity or quantity < 1 or quantity > 1000
  or not ARGV[3]:find("^[hs]%d+|%d+|[^|]+|[^|]*$") then
  return redis.error_reply("SECKILL arguments")
end
local sale = redis.call("HMGET", KEYS[1], "state", "fence", "available", "held", "sold")
if not sale[1] or sale[1] == "sealed" then return {"not_ready"} end
local seen, available, held, sold = plain(sale[2] or "0"), plain(sale[3]), plain(sale[4]), plain(sale[5])
if not seen then return corrupt("fence") end
if not available then return corrupt("available") end
if not held then return corrupt("held") end
if not sold then return corrupt("sold") end
local record = redis.call("HGET", KEYS[2], ARGV[2])
local mark = record and record:byte(1)
local has = plain(redis.call("HGET", KEYS[3], ARGV[5]) or "0")
if not has then return corrupt("buyer") end
local asked = redis.call("HGET", KEYS[4], ARGV[6])

if fence < seen then return {"fenced"} end
if mark == 104 or mark == 115 then return {"ok", 0} end
if record and mark ~= 114 then return corrupt("hold") end
if available < quantity then return {"conflict"} end

local counter, units = "held", held
if ARGV[3]:byte(1) == 115 then counter, units = "sold", sold end
redis.call("HSET", KEYS[1], "fence", ARGV[1], "available", string.format("%d", available - quantity),
  counter, string.format("%d", units + quantity))
redis.call("HSET", KEYS[2], ARGV[2], ARGV[3])
redis.call("HSET", KEYS[3], ARGV[5], string.format("%d", has + quantity))
if ARGV[6] ~= "" and not asked then redis.call("HSET", KEYS[4], ARGV[6], ARGV[2]) end
return {"ok", quantity}
