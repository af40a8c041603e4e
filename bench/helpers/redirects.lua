-- For wrk: one of the slugs bench-0, bench-1, … at random, as a browser asks for them. Arguments: how many slugs, a
-- seed, and the milliseconds that a connection rests before each request.
dofile("bench/helpers/report.lua")

local requests = {}

function init(args)
  math.randomseed(tonumber(args[2]))
  local rest = tonumber(args[3])
  if rest > 0 then
    delay = function()
      return rest
    end
  end
  wrk.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
  wrk.headers["Accept"] = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
  for n = 1, tonumber(args[1]) do
    requests[n] = wrk.format("GET", "/bench-" .. (n - 1))
  end
end

function request()
  return requests[math.random(#requests)]
end
