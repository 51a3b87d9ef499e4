#!lua flags=allow-oom
-- Releases holds: their units become available again, their buyers get their
-- allowance back. The record stays, marked released. An unknown id leaves a
-- tombstone, so that a late grab under that id is refused.
--
-- KEYS  1 sale  2 holds  3 buyers
-- ARGV  1 … n hold ids, at most 1000
-- Returns {"ok", units that came free} or {"not_ready"}

if #ARGV < 1 or #ARGV > 1000 then return redis.error_reply("SECKILL arguments") end
local sale = redis.call("HMGET", KEYS[1], "state", "total", "available", "held", "frees")
if not sale[1] or sale[1] == "sealed" then return {"not_ready"} end
local total, available, held = plain(sale[2]), plain(sale[3]), plain(sale[4])
if not total then return corrupt("total") end
if not available then return corrupt("available") end
if not held then return corrupt("held") end
local records = redis.call("HMGET", KEYS[2], unpack(ARGV))
redis.call("HLEN", KEYS[3])

local clock = redis.call("TIME")
local tombstone = "r" .. string.format("%d", clock[1] * 1000 + math.floor(clock[2] / 1000)) .. "|0||"
local done, changes, c = {}, {}, 0
local units = {}
local freed = 0
for i = 1, #ARGV do
  local id, record = ARGV[i], records[i]
  if not done[id] then
    done[id] = true
    local mark = record and record:byte(1)
    if not record then
      changes[c + 1], changes[c + 2] = id, tombstone
      c = c + 2
    elseif mark == 104 then
      local quantity, buyer = record:match("^h%d+|(%d+)|([^|]+)|[^|]*$")
      quantity = plain(quantity)
      if not quantity then return corrupt("hold") end
      local has = units[buyer] or plain(redis.call("HGET", KEYS[3], buyer) or "0")
      if not has then return corrupt("buyer") end
      -- Figures that were damaged before stop at their bounds; the audit names them.
      units[buyer] = math.max(has - quantity, 0)
      freed = freed + quantity
      changes[c + 1], changes[c + 2] = id, "r" .. record:sub(2)
      c = c + 2
    elseif mark ~= 114 and mark ~= 115 then
      return corrupt("hold")
    end
  end
end

if c > 0 then redis.call("HSET", KEYS[2], unpack(changes)) end
if freed > 0 then
  for buyer, has in pairs(units) do
    if has == 0 then
      redis.call("HDEL", KEYS[3], buyer)
    else
      redis.call("HSET", KEYS[3], buyer, string.format("%d", has))
    end
  end
  -- The total caps what comes back; more than that was there by damage only.
  local back = math.max(available, math.min(available + freed, total))
  redis.call("HSET", KEYS[1], "available", string.format("%d", back),
    "held", string.format("%d", math.max(held - freed, 0)), "frees", string.format("%d", (plain(sale[5] or "0") or 0) + 1))
end
return {"ok", freed}
