-- Stands in front of every script, after its first line.

-- A figure is a plain decimal from 0 to 2^53-1; anything else is nil.
local function plain(text)
  if type(text) == "string" and #text <= 16 and (text == "0" or text:find("^[1-9]%d*$")) then
    local number = tonumber(text)
    if number <= 9007199254740991 then return number end
  end
end

-- The error of a figure that is none, or of a record that is damaged.
local function corrupt(what)
  return redis.error_reply("SECKILL corrupt " .. what)
end

-- What the queue's entries of the sale add up to, in units, and those of all
-- sales, in orders. One entry has at most 1000 orders of 1000 units; one that says
-- otherwise, or nothing readable, counts 0.
local function queuedUnits(queue, id)
  local units, orders, from = 0, 0, "-"
  repeat
    local page = redis.call("XRANGE", queue, from, "+", "COUNT", "20")
    for i = 1, #page do
      local fields, entry = page[i][2], {}
      for f = 1, #fields, 2 do entry[fields[f]] = fields[f + 1] end
      local figure, count = plain(entry.units), plain(entry.count)
      if entry.sale == id and figure and figure <= 1000000 then units = units + figure end
      if count and count <= 1000 then orders = orders + count end
      from = "(" .. page[i][1]
    end
  until #page < 20
  return units, orders
end
