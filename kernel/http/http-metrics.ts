import type { Metrics } from '../metrics.ts'

export interface HttpMetrics {
  finished(service: string, route: string, status: number, seconds: number): void
}

/** The series of one service: by route and status, and the time of all. */
interface ServiceSeries {
  readonly requests: Map<string, Map<number, () => void>>
  readonly observe: (seconds: number) => void
}

/** Counts and times requests by service, route pattern and status. */
export function createHttpMetrics(metrics: Metrics): HttpMetrics {
  const requests = metrics.counter('gatehouse_http_requests', 'Requests answered.')
  const seconds = metrics.histogram('gatehouse_http_request_seconds', 'Time to answer a request.')
  const services = new Map<string, ServiceSeries>()

  return {
    finished(service, route, status, elapsed) {
      const known = kept(services, service, () => {
        return { requests: new Map(), observe: seconds.series({ service }) }
      })
      const routes = kept(known.requests, route, () => new Map<number, () => void>())
      const count = kept(routes, status, () =>
        requests.series({ service, route, status: String(status) }),
      )
      count()
      known.observe(elapsed)
    },
  }
}

/** A map's value, made when it is asked for first. */
function kept<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const value = make()
  map.set(key, value)
  return value
}
