#!lua
-- Starts the load of a sealed sale: its records are gone, and the load's token
-- says whose parts may follow. Queue entries stay and are counted anew.
--
-- KEYS  1 sale  2 holds  3 buyers  4 requests  5 queue
-- ARGV  1 fence  2 token  3 sale id, as queue entries name it
-- Returns {"ok"}, {"state"} or {"fenced"}

-- What the queue's entries of the sale add up to. One entry has at most 1000
-- orders of 1000 units; one that says otherwise, or nothing readable, counts 0.
local function queuedUnits(queue, id)
  local units, from = 0, "-"
  repeat
    local page = redis.call("XRANGE", queue, from, "+", "COUNT", "20")
    for i = 1, #page do
      local fields, of, figure = page[i][2], nil, nil
      for f = 1, #fields, 2 do
        if fields[f] == "sale" then of = fields[f + 1] elseif fields[f] == "units" then figure = fields[f + 1] end
      end
      local counted = of == id and plain(figure)
      if counted and counted <= 1000000 then units = units + counted end
      from = "(" .. page[i][1]
    end
  until #page < 20
  return units
end

local fence = plain(ARGV[1])
if #ARGV ~= 3 or not fence or ARGV[2] == "" then return redis.error_reply("SECKILL arguments") end
local sale = redis.call("HMGET", KEYS[1], "state", "fence", "loading")
local seen = plain(sale[2] or "0")
if not seen then return corrupt("fence") end
if fence < seen then return {"fenced"} end
if sale[1] ~= "sealed" then return {"state"} end
if sale[3] == ARGV[2] then return {"ok"} end
local queued = queuedUnits(KEYS[5], ARGV[3])

redis.call("UNLINK", KEYS[2], KEYS[3], KEYS[4])
-- Of the sale itself only what is set here stays: loans and edits are part of the load.
redis.call("UNLINK", KEYS[1])
redis.call("HSET", KEYS[1], "state", "sealed", "fence", ARGV[1], "loading", ARGV[2], "queued", string.format("%d", queued),
  "total", "0", "available", "0", "held", "0", "sold", "0")
return {"ok"}
