#!lua
-- Decides up to 1000 claims of one sale in their order, in one step: replay,
-- gate, buyer's limit, stock; then deducts, records the holds and queues their
-- intents as one stream entry. All reads and checks come before the first
-- write, and the XADD, the only write that may still fail, comes first.
--
-- KEYS  1 sale  2 holds  3 buyers  4 requests  5 queue  6 depth
-- ARGV  1 sale id, for the queue entry
--       2 n, the number of claims
--       then n order ids, n buyers, n quantities, n tails
--       "quantity|buyer|request" and, when any claim has a request id, n
--       request fields "buyer|request" ("" for a claim without)
-- Returns {} when the sale is not ready, else {units available before, start
-- of the window in ms, one letter per claim, order id for each letter X}:
--       A accepted            R accepted before    X accepted before under the
--       L limit reached       S sold out             order id that follows
--       N not started         P paused             Q request id reused
--       E ended               W withdrawn

-- A figure is a plain decimal from 0 to 2^53-1; anything else is nil.
local function plain(text)
  if type(text) == "string" and #text <= 16 and (text == "0" or text:find("^[1-9]%d*$")) then
    local number = tonumber(text)
    if number <= 9007199254740991 then return number end
  end
end

local function corrupt(what)
  return redis.error_reply("SECKILL corrupt " .. what)
end

local n = plain(ARGV[2])
if not n or n < 1 or n > 1000 or (#ARGV ~= 4 * n + 2 and #ARGV ~= 5 * n + 2) then
  return redis.error_reply("SECKILL arguments")
end
local asks = #ARGV == 5 * n + 2
local buyersAt, quantitiesAt, tailsAt, fieldsAt = n + 2, 2 * n + 2, 3 * n + 2, 4 * n + 2

local sale = redis.call("HMGET", KEYS[1], "state", "epoch", "available", "held", "queued", "limit", "starts", "ends")
local state = sale[1]
if not state or state == "sealed" then return {} end
local available, held, queued, limit = plain(sale[3]), plain(sale[4]), plain(sale[5]), plain(sale[6])
local starts, ends = plain(sale[7]), plain(sale[8])
if not plain(sale[2]) then return corrupt("epoch") end
if not available then return corrupt("available") end
if not held then return corrupt("held") end
if not queued then return corrupt("queued") end
if not limit then return corrupt("limit") end
if not starts then return corrupt("starts") end
if not ends then return corrupt("ends") end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local gate
if state == "closed" or state == "archived" or now >= ends then
  gate = "E"
elseif state == "paused" then
  gate = "P"
elseif state ~= "open" or now < starts then
  gate = "N"
end

local records = redis.call("HMGET", KEYS[2], unpack(ARGV, 3, n + 2))
local asked = asks and redis.call("HMGET", KEYS[4], unpack(ARGV, fieldsAt + 1, fieldsAt + n))
local recorded, depth
if not gate then
  recorded = redis.call("HMGET", KEYS[3], unpack(ARGV, buyersAt + 1, buyersAt + n))
  redis.call("XLEN", KEYS[5])
  depth = plain(redis.call("GET", KEYS[6]) or "0")
  if not depth then return corrupt("depth") end
end

local before = available
local letters, others = {}, {}
local figures = {}              -- quantity as text -> checked number
local fresh, first = {}, {}     -- of this batch: order id -> quantity, request field -> order id
local units = {}                -- buyer -> units after this batch so far
local stamp = "h" .. string.format("%d", now) .. "|"
local holds, h = {}, 0
local requests, r = {}, 0
local orders, o = {}, 0

for i = 1, n do
  local order, text = ARGV[2 + i], ARGV[quantitiesAt + i]
  local quantity = figures[text]
  if not quantity then
    quantity = plain(text)
    if not quantity or quantity < 1 or quantity > 1000 then
      return redis.error_reply("SECKILL quantity")
    end
    figures[text] = quantity
  end

  local letter
  local record = records[i]
  if fresh[order] then
    letter = "R"
  elseif record then
    local mark = record:byte(1)
    if mark == 104 or mark == 115 then
      letter = "R"
    elseif mark == 114 then
      letter = "W"
    else
      return corrupt("hold")
    end
  else
    local field = asks and ARGV[fieldsAt + i]
    if field == "" then field = false end
    local earlier = field and (first[field] or asked[i])
    if earlier then
      -- Rare, so one read each.
      local had = fresh[earlier]
      if not had then
        local old = redis.call("HGET", KEYS[2], earlier)
        had = old and plain(old:match("^%a%d+|(%d+)|"))
      end
      if had and had ~= quantity then
        letter = "Q"
      else
        letter = "X"
        others[#others + 1] = earlier
      end
    elseif gate then
      letter = gate
    else
      local buyer = ARGV[buyersAt + i]
      local has = units[buyer]
      if not has then
        has = plain(recorded[i] or "0")
        if not has then return corrupt("buyer") end
      end
      if has + quantity > limit then
        letter = "L"
      elseif available < quantity then
        letter = "S"
      else
        letter = "A"
        available = available - quantity
        units[buyer] = has + quantity
        fresh[order] = quantity
        local tail = ARGV[tailsAt + i]
        holds[h + 1], holds[h + 2] = order, stamp .. tail
        h = h + 2
        orders[o + 1], orders[o + 2] = order, tail
        o = o + 2
        if field then
          first[field] = order
          requests[r + 1], requests[r + 2] = field, order
          r = r + 2
        end
      end
    end
  end
  letters[i] = letter
end

if h > 0 then
  local taken = before - available
  local count = h / 2
  local totals, t = {}, 0
  for buyer, has in pairs(units) do
    totals[t + 1], totals[t + 2] = buyer, string.format("%d", has)
    t = t + 2
  end
  redis.call("XADD", KEYS[5], "*", "sale", ARGV[1], "epoch", sale[2], "time", string.format("%d", now),
    "units", string.format("%d", taken), "count", string.format("%d", count), "orders", table.concat(orders, "\n"))
  redis.call("HSET", KEYS[1], "available", string.format("%d", available),
    "held", string.format("%d", held + taken), "queued", string.format("%d", queued + taken))
  redis.call("HSET", KEYS[2], unpack(holds))
  redis.call("HSET", KEYS[3], unpack(totals))
  if r > 0 then redis.call("HSET", KEYS[4], unpack(requests)) end
  redis.call("SET", KEYS[6], string.format("%d", depth + count))
end

return {before, starts, table.concat(letters), unpack(others)}
