#!lua flags=allow-oom
-- Takes units out of a segment for another one. They stay written here, as the
-- loan, until the other has them, so that whoever comes by can bring them there.
-- An earlier loan to the same segment has to be brought first.
--
-- KEYS  1 sale
-- ARGV  1 number of the borrowing segment  2 units, at most that many are lent
-- Returns {"ok", epoch, serial number of the loan, units}, units 0 when there
-- is nothing to lend; or {"not_ready"}

local most = plain(ARGV[2])
if #ARGV ~= 2 or not plain(ARGV[1]) or not most then return redis.error_reply("SECKILL arguments") end
local loan, serials = "loan:" .. ARGV[1], "loans:" .. ARGV[1]
local sale = redis.call("HMGET", KEYS[1], "state", "epoch", "total", "available", "lending", loan, serials, "moves")
if not sale[1] or sale[1] == "sealed" then return {"not_ready"} end
local epoch, total, available = plain(sale[2]), plain(sale[3]), plain(sale[4])
local lending, serial = plain(sale[5] or "0"), plain(sale[7] or "0")
if not epoch then return corrupt("epoch") end
if not total then return corrupt("total") end
if not available then return corrupt("available") end
if not lending or not serial then return corrupt("loans") end
if sale[6] then
  local units = plain(sale[6])
  if not units then return corrupt("loans") end
  return {"ok", epoch, serial, units}
end
local units = math.min(available, total, most)
if units == 0 then return {"ok", epoch, serial, 0} end
redis.call("HSET", KEYS[1], "total", string.format("%d", total - units), "available", string.format("%d", available - units),
  "lending", string.format("%d", lending + 1), "moves", string.format("%d", (plain(sale[8] or "0") or 0) + 1), loan, string.format("%d", units), serials, string.format("%d", serial + 1))
return {"ok", epoch, serial + 1, units}
