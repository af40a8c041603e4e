-- For wrk with one thread: requests in turn, each with a random id. Arguments: a file that holds, for each request, a
-- line with the lengths of the text before the id and of the text after it, and then both; and the seed of the ids.
dofile("bench/helpers/report.lua")

local heads, tails = {}, {}
local at = 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  for line in file:lines() do
    local head, tail = line:match("^(%d+) (%d+)$")
    heads[#heads + 1] = file:read(tonumber(head))
    tails[#tails + 1] = file:read(tonumber(tail))
    file:read("*l")
  end
  file:close()
  math.randomseed(tonumber(args[2]))
end

function request()
  at = at % #heads + 1
  local r = math.random
  local id = string.format("%08x-%04x-4%03x-8%03x-%06x%06x", r(0, 2 ^ 31 - 1), r(0, 65535), r(0, 4095), r(0, 4095),
    r(0, 2 ^ 24 - 1), r(0, 2 ^ 24 - 1))
  return heads[at] .. id .. tails[at]
end
