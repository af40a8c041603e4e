-- For wrk with one thread: a request with an id of its own each. Arguments: the request's text before the id,
-- the text after it, and what the ids of this run begin with.
dofile("bench/helpers/report.lua")

local head, tail
local at = 0

function init(args)
  head = args[1] .. args[3] .. "-"
  tail = args[2]
end

function request()
  at = at + 1
  return head .. at .. tail
end
