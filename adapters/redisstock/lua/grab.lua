#!lua
-- Decides up to 1000 claims of one or more sales of a partition, in one step.
-- The claims of a sale are a group, decided in their order: replay, gate,
-- buyer's limit, stock; then deducted, recorded as holds and queued as one
-- stream entry. In a group all reads and checks come before the first write, and
-- the XADD, the only write that may still fail, comes first. What is damaged in
-- one group leaves the others alone.
--
-- KEYS  1 queue  2 depth
--       then for each group: sale  holds  buyers  requests
-- ARGV  1 n, the number of claims
--       then for each group: sale id, for the queue entry; number of segments
--       of the sale, as the caller knows it; number of claims
--       then n order ids, n buyers, n quantities, n tails
--       "quantity|buyer|request" and, when any claim has a request id, n
--       request fields "buyer|request" ("" for a claim without)
-- Returns for each group, {} when the sale is not ready, {"!", what} when it is
-- damaged, {"/", segments} when it has another number of segments, else
-- {units available before, start of the window in ms, one letter per claim,
-- order id for each letter X}:
--       A accepted            R accepted before    X accepted before under the
--       L limit reached       S sold out             order id that follows
--       N not started         P paused             Q request id reused
--       E ended               W withdrawn

local n, groups = plain(ARGV[1]), (#KEYS - 2) / 4
local base = 1 + 3 * groups
if not n or n < 1 or n > 1000 or groups < 1 or groups % 1 > 0
  or (#ARGV ~= base + 4 * n and #ARGV ~= base + 5 * n) then
  return redis.error_reply("SECKILL arguments")
end
local asks = #ARGV == base + 5 * n
local ordersAt, buyersAt, quantitiesAt, tailsAt, fieldsAt = base, base + n, base + 2 * n, base + 3 * n, base + 4 * n

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local moment = string.format("%d", now)
local stamp = "h" .. moment .. "|"

redis.call("XLEN", KEYS[1])
local depth = plain(redis.call("GET", KEYS[2]) or "0")
if not depth then return redis.error_reply("SECKILL corrupt depth") end
local queued = 0                -- orders that this call queues
local figures = {}              -- quantity as text -> checked number

-- group decides the claims from + 1 … to, with keys from k on.
local function group(k, id, segments, from, to)
  local sale = redis.pcall("HMGET", KEYS[k], "state", "epoch", "available", "held", "queued", "limit", "starts", "ends", "segments")
  if sale.err then return {"!", "sale"} end
  local state = sale[1]
  if not state or state == "sealed" then return {} end
  if sale[9] ~= segments then return {"/", sale[9] or ""} end
  local available, held, waiting, limit = plain(sale[3]), plain(sale[4]), plain(sale[5]), plain(sale[6])
  local starts, ends = plain(sale[7]), plain(sale[8])
  if not plain(sale[2]) then return {"!", "epoch"} end
  if not available then return {"!", "available"} end
  if not held then return {"!", "held"} end
  if not waiting then return {"!", "queued"} end
  if not limit then return {"!", "limit"} end
  if not starts then return {"!", "starts"} end
  if not ends then return {"!", "ends"} end

  local gate
  if state == "closed" or state == "archived" or now >= ends then
    gate = "E"
  elseif state == "paused" then
    gate = "P"
  elseif state ~= "open" or now < starts then
    gate = "N"
  end

  local records = redis.pcall("HMGET", KEYS[k + 1], unpack(ARGV, ordersAt + from + 1, ordersAt + to))
  if records.err then return {"!", "holds"} end
  local asked = asks and redis.pcall("HMGET", KEYS[k + 3], unpack(ARGV, fieldsAt + from + 1, fieldsAt + to))
  if asked and asked.err then return {"!", "requests"} end
  local recorded
  if not gate then
    recorded = redis.pcall("HMGET", KEYS[k + 2], unpack(ARGV, buyersAt + from + 1, buyersAt + to))
    if recorded.err then return {"!", "buyers"} end
  end

  local before = available
  local letters, others = {}, {}
  local fresh, first = {}, {}     -- of this batch: order id -> quantity, request field -> order id
  local units = {}                -- buyer -> units after this batch so far
  local holds, h = {}, 0
  local requests, r = {}, 0
  local orders, o = {}, 0

  for i = 1, to - from do
    local place = from + i
    local order, text = ARGV[ordersAt + place], ARGV[quantitiesAt + place]
    local quantity = figures[text]
    if not quantity then
      quantity = plain(text)
      if not quantity or quantity < 1 or quantity > 1000 then return {"!", "quantity"} end
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
        return {"!", "hold"}
      end
    else
      local field = asks and ARGV[fieldsAt + place]
      if field == "" then field = false end
      local earlier = field and (first[field] or asked[i])
      if earlier then
        -- Rare, so one read each.
        local had = fresh[earlier]
        if not had then
          local old = redis.call("HGET", KEYS[k + 1], earlier)
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
        local buyer = ARGV[buyersAt + place]
        local has = units[buyer]
        if not has then
          has = plain(recorded[i] or "0")
          if not has then return {"!", "buyer"} end
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
          local tail = ARGV[tailsAt + place]
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
    local totals, t = {}, 0
    for buyer, has in pairs(units) do
      totals[t + 1], totals[t + 2] = buyer, string.format("%d", has)
      t = t + 2
    end
    redis.call("XADD", KEYS[1], "*", "sale", id, "epoch", sale[2], "time", moment,
      "units", string.format("%d", taken), "count", string.format("%d", h / 2), "orders", table.concat(orders, "\n"))
    redis.call("HSET", KEYS[k], "available", string.format("%d", available),
      "held", string.format("%d", held + taken), "queued", string.format("%d", waiting + taken))
    redis.call("HSET", KEYS[k + 1], unpack(holds))
    redis.call("HSET", KEYS[k + 2], unpack(totals))
    if r > 0 then redis.call("HSET", KEYS[k + 3], unpack(requests)) end
    queued = queued + h / 2
  end
  return {before, starts, table.concat(letters), unpack(others)}
end

local replies, from = {}, 0
for g = 1, groups do
  local at = 3 * g - 1
  local count = plain(ARGV[at + 2])
  if not count or from + count > n then return redis.error_reply("SECKILL arguments") end
  replies[g] = group(4 * g - 1, ARGV[at], ARGV[at + 1], from, from + count)
  from = from + count
end
if queued > 0 then redis.call("SET", KEYS[2], string.format("%d", depth + queued)) end
return replies
