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
