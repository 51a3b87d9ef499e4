#!lua flags=allow-oom
-- Adds units to a sale's total and to what is available, or withdraws them. An
-- edit is known by its mark, so that a repeat does nothing.
--
-- KEYS  1 sale
-- ARGV  1 fence  2 mark  3 "+" or "-"  4 units
-- Returns {"ok"}, {"not_ready"}, {"fenced"}, or {"unbalanced"} when fewer units
-- are available than are withdrawn

local fence, units = plain(ARGV[1]), plain(ARGV[4])
if #ARGV ~= 4 or not fence or not units or ARGV[2] == "" or (ARGV[3] ~= "+" and ARGV[3] ~= "-") then
  return redis.error_reply("SECKILL arguments")
end
local sale = redis.call("HMGET", KEYS[1], "state", "fence", "total", "available", "edit", "frees")
if not sale[1] or sale[1] == "sealed" then return {"not_ready"} end
local seen, total, available = plain(sale[2] or "0"), plain(sale[3]), plain(sale[4])
if not seen then return corrupt("fence") end
if not total then return corrupt("total") end
if not available then return corrupt("available") end
if fence < seen then return {"fenced"} end
if sale[5] == ARGV[2] then return {"ok"} end
if ARGV[3] == "-" then
  if available < units or total < units then return {"unbalanced"} end
  units = -units
end
if total + units > 9007199254740991 then return redis.error_reply("SECKILL arguments") end
redis.call("HSET", KEYS[1], "fence", ARGV[1], "total", string.format("%d", total + units),
  "available", string.format("%d", available + units), "edit", ARGV[2],
  "frees", string.format("%d", (plain(sale[6] or "0") or 0) + 1))
return {"ok"}
