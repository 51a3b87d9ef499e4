#!lua flags=allow-oom
-- Undoes takings of the strategy "incr" that found too few units: available has
-- lost none. One whose record has changed since is left alone: it was released,
-- or the sale was loaded anew.
--
-- KEYS  1 sale  2 holds  3 buyers
-- ARGV  for each taking, at most 250: id, record, buyer, quantity
-- Returns {"ok", units that were dropped}

if #ARGV < 4 or #ARGV > 1000 or #ARGV % 4 > 0 then return redis.error_reply("SECKILL arguments") end
local held = plain(redis.call("HGET", KEYS[1], "held") or "0")
if not held then return corrupt("held") end
local takings, left, units = {}, {}, 0
for i = 1, #ARGV, 4 do
  local quantity, buyer = plain(ARGV[i + 3]), ARGV[i + 2]
  if not quantity then return redis.error_reply("SECKILL arguments") end
  left[buyer] = left[buyer] or plain(redis.call("HGET", KEYS[3], buyer) or "0")
  if not left[buyer] then return corrupt("buyer") end
  if redis.call("HGET", KEYS[2], ARGV[i]) == ARGV[i + 1] then
    takings[#takings + 1] = ARGV[i]
    left[buyer] = math.max(left[buyer] - quantity, 0)
    units = units + quantity
  end
end
if units == 0 then return {"ok", 0} end
redis.call("HSET", KEYS[1], "held", string.format("%d", math.max(held - units, 0)))
redis.call("HDEL", KEYS[2], unpack(takings))
for buyer, has in pairs(left) do
  if has > 0 then
    redis.call("HSET", KEYS[3], buyer, string.format("%d", has))
  else
    redis.call("HDEL", KEYS[3], buyer)
  end
end
return {"ok", units}
