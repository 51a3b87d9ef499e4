#!lua flags=no-writes
-- Counts a sale record by record. Reads only.
--
-- KEYS  1 sale  2 holds  3 buyers  4 queue  5 depth
--       6 requests, of which only the type is looked at
-- ARGV  1 sale id, as queue entries name it
-- Returns {"not_ready"} or {"ok", epoch, state, total, available, held, sold,
-- queued, held units by record, sold units by record, queued units by entry,
-- then buyer, units recorded and units counted for at most 100 buyers who differ}

if #ARGV ~= 1 then return redis.error_reply("SECKILL arguments") end
local names = {"epoch", "total", "available", "held", "sold", "queued"}
local state = redis.call("HGET", KEYS[1], "state")
if not state or state == "sealed" then return {"not_ready"} end
local sale = redis.call("HMGET", KEYS[1], unpack(names))
local figures = {}
for i = 1, #names do
  figures[i] = plain(sale[i])
  if not figures[i] then return corrupt(names[i]) end
end

redis.call("HLEN", KEYS[6])
if not plain(redis.call("GET", KEYS[5]) or "0") then return corrupt("depth") end

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
if units[104] > 9007199254740991 or units[115] > 9007199254740991 then return corrupt("hold") end

local drifts, d = {}, 0
local function name(buyer, recorded, count)
  if recorded ~= count and d < 300 then
    drifts[d + 1], drifts[d + 2], drifts[d + 3] = buyer, recorded, count
    d = d + 3
  end
end
local buyers = redis.call("HGETALL", KEYS[3])
for i = 1, #buyers, 2 do
  local recorded = plain(buyers[i + 1])
  if not recorded then return corrupt("buyer") end
  name(buyers[i], recorded, counted[buyers[i]] or 0)
  counted[buyers[i]] = nil
end
for buyer, count in pairs(counted) do name(buyer, 0, count) end

return {"ok", figures[1], state, figures[2], figures[3], figures[4], figures[5], figures[6],
  units[104], units[115], (queuedUnits(KEYS[4], ARGV[1])), unpack(drifts)}
