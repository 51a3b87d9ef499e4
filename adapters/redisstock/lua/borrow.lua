#!lua flags=allow-oom
-- Puts lent units into the segment that borrows them, once. Serial numbers of a
-- lender's loans grow, so a loan that comes a second time is known by its number.
--
-- KEYS  1 sale
-- ARGV  1 number of the lending segment  2 epoch  3 serial number  4 units
-- Returns {"ok", units that were added}, {"not_ready"}, or {"conflict"} when the
-- sale was loaded anew since: the loan is part of that load

local serial, units = plain(ARGV[3]), plain(ARGV[4])
if #ARGV ~= 4 or not plain(ARGV[1]) or not plain(ARGV[2]) or not serial or not units then
  return redis.error_reply("SECKILL arguments")
end
local borrowed = "borrowed:" .. ARGV[1]
local sale = redis.call("HMGET", KEYS[1], "state", "epoch", "total", "available", "moves", borrowed)
if not sale[1] or sale[1] == "sealed" then return {"not_ready"} end
if sale[2] ~= ARGV[2] then return {"conflict"} end
local total, available, moves, last = plain(sale[3]), plain(sale[4]), plain(sale[5] or "0"), plain(sale[6] or "0")
if not total then return corrupt("total") end
if not available then return corrupt("available") end
if not moves or not last then return corrupt("loans") end
if serial <= last then return {"ok", 0} end
redis.call("HSET", KEYS[1], "total", string.format("%d", total + units), "available", string.format("%d", available + units),
  "moves", string.format("%d", moves + 1), borrowed, ARGV[3])
return {"ok", units}
