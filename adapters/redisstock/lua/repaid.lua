#!lua flags=allow-oom
-- Forgets a loan that has reached its borrower.
--
-- KEYS  1 sale
-- ARGV  1 number of the borrowing segment  2 epoch  3 serial number
-- Returns {"ok"}; also when the loan is forgotten already

if #ARGV ~= 3 or not plain(ARGV[1]) or not plain(ARGV[2]) or not plain(ARGV[3]) then
  return redis.error_reply("SECKILL arguments")
end
local loan = "loan:" .. ARGV[1]
local sale = redis.call("HMGET", KEYS[1], "epoch", "lending", loan, "loans:" .. ARGV[1])
if sale[1] ~= ARGV[2] or not sale[3] or sale[4] ~= ARGV[3] then return {"ok"} end
local lending = plain(sale[2] or "0")
if not lending then return corrupt("loans") end
redis.call("HDEL", KEYS[1], loan)
redis.call("HSET", KEYS[1], "lending", string.format("%d", math.max(lending - 1, 0)))
return {"ok"}
