#!lua flags=allow-oom
-- Settles holds: held units become sold units. Released and unknown ids are
-- left alone.
--
-- KEYS  1 sale  2 holds
-- ARGV  1 … n hold ids, at most 1000
-- Returns {"ok", units settled} or {"not_ready"}

if #ARGV < 1 or #ARGV > 1000 then return redis.error_reply("SECKILL arguments") end
local sale = redis.call("HMGET", KEYS[1], "state", "held", "sold")
if not sale[1] or sale[1] == "sealed" then return {"not_ready"} end
local held, sold = plain(sale[2]), plain(sale[3])
if not held then return corrupt("held") end
if not sold then return corrupt("sold") end
local records = redis.call("HMGET", KEYS[2], unpack(ARGV))

local done, changes, c = {}, {}, 0
local settled = 0
for i = 1, #ARGV do
  local id, record = ARGV[i], records[i]
  if record and not done[id] then
    done[id] = true
    local mark = record:byte(1)
    if mark == 104 then
      local quantity = plain(record:match("^h%d+|(%d+)|"))
      if not quantity then return corrupt("hold") end
      settled = settled + quantity
      changes[c + 1], changes[c + 2] = id, "s" .. record:sub(2)
      c = c + 2
    elseif mark ~= 114 and mark ~= 115 then
      return corrupt("hold")
    end
  end
end

if c > 0 then
  redis.call("HSET", KEYS[2], unpack(changes))
  redis.call("HSET", KEYS[1], "held", string.format("%d", math.max(held - settled, 0)),
    "sold", string.format("%d", sold + settled))
end
return {"ok", settled}
