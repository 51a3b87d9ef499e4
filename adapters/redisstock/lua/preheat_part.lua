#!lua
-- Writes one part of a load. It sets, so a repeat changes nothing.
--
-- KEYS  1 sale  2 holds  3 buyers  4 requests
-- ARGV  1 fence  2 token  3 number of holds  4 number of buyers  5 number of
--       requests, then field and value of each, at most 1000 of a kind
-- Returns {"ok"}, {"fenced"}, or {"state"} when another load has taken over

local fence = plain(ARGV[1])
local counts = {plain(ARGV[3]), plain(ARGV[4]), plain(ARGV[5])}
local expected = 5
for kind = 1, 3 do
  if not counts[kind] or counts[kind] > 1000 then return redis.error_reply("SECKILL arguments") end
  expected = expected + 2 * counts[kind]
end
if #ARGV ~= expected or not fence then return redis.error_reply("SECKILL arguments") end
local sale = redis.call("HMGET", KEYS[1], "state", "loading", "fence")
local seen = plain(sale[3] or "0")
if not seen then return corrupt("fence") end
if fence < seen then return {"fenced"} end
if sale[1] ~= "sealed" or sale[2] ~= ARGV[2] then return {"state"} end
for kind = 1, 3 do redis.call("HLEN", KEYS[kind + 1]) end

local at = 6
for kind = 1, 3 do
  local size = 2 * counts[kind]
  if size > 0 then redis.call("HSET", KEYS[kind + 1], unpack(ARGV, at, at + size - 1)) end
  at = at + size
end
return {"ok"}
