-- For wrk: one line that bench/helpers/wrk.ts reads: answered, µs, failed, p99 in µs.
function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("result %d %d %d %d\n", summary.requests, summary.duration, failed, latency:percentile(99)))
end
