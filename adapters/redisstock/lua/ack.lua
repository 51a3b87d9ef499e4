#!lua flags=allow-oom
-- Acknowledges stream entries and removes them. Units and orders are taken off
-- the counters by what the entry itself says, and only when it was still there,
-- so a repeat changes nothing. An unreadable counter is left as it is: it must
-- not keep an entry in the queue.
--
-- KEYS  1 queue  2 depth  3 … sales that the entries name
-- ARGV  1 group  2 … n entry ids, at most 1000, each followed by the place of
--       its sale in KEYS, 0 for none
-- Returns the number of entries removed

if #ARGV < 3 or #ARGV > 2001 or #ARGV % 2 ~= 1 then return redis.error_reply("SECKILL arguments") end
local depth = plain(redis.call("GET", KEYS[2]) or "0")
local queued = {}
for k = 3, #KEYS do queued[k] = plain(redis.call("HGET", KEYS[k], "queued")) end

local ids, removed = {}, {}
local changed = {}
for i = 2, #ARGV, 2 do
  local id, place = ARGV[i], plain(ARGV[i + 1])
  if not place or place == 1 or place == 2 or place > #KEYS then return redis.error_reply("SECKILL arguments") end
  ids[#ids + 1] = id
  local entry = not removed[id] and redis.call("XRANGE", KEYS[1], id, id)[1]
  if entry then
    removed[id] = true
    local fields = {}
    for f = 1, #entry[2], 2 do fields[entry[2][f]] = entry[2][f + 1] end
    if depth then depth = math.max(depth - (plain(fields.count) or 0), 0) end
    if queued[place] then
      queued[place] = math.max(queued[place] - (plain(fields.units) or 0), 0)
      changed[place] = true
    end
  end
end

redis.call("XACK", KEYS[1], ARGV[1], unpack(ids))
local count = redis.call("XDEL", KEYS[1], unpack(ids))
if depth and count > 0 then redis.call("SET", KEYS[2], string.format("%d", depth)) end
for place in pairs(changed) do
  redis.call("HSET", KEYS[place], "queued", string.format("%d", queued[place]))
end
return count
