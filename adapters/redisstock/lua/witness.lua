#!lua flags=allow-oom
-- Tells whether a partition is on the server, and in the life of the server, that
-- was vouched for. The witness is that server's run id and replication id: the
-- first is new with every start, the second with every promotion, so that a master
-- that was demoted and came back is told too. Where it is not there, a doubt is
-- written in its place, "?" and more, which vanishes with the data.
--
-- KEYS  1 witness
-- ARGV  1 the doubt to end, "again" to doubt the one that was vouched for, or ""
-- Returns {the doubt or "", the server's ids now}

local process = redis.call("INFO", "server"):match("run_id:(%w+)")
local history = redis.call("INFO", "replication"):match("master_replid:(%w+)")
if not process or not history then return redis.error_reply("SECKILL INFO tells no run_id or master_replid") end
local run = process .. "/" .. history
local seen = redis.call("GET", KEYS[1])
if seen == run and ARGV[1] ~= "again" then return {"", run} end
local mine = "?" .. run .. "."
if not seen or seen:sub(1, #mine) ~= mine then
  local clock = redis.call("TIME")
  seen = mine .. clock[1] .. "." .. clock[2]
  redis.call("SET", KEYS[1], seen)
  return {seen, run}
end
if seen ~= ARGV[1] then return {seen, run} end
redis.call("SET", KEYS[1], run)
return {"", run}
