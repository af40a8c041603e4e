import { readOpenMetrics } from '../fixtures/open-metrics.ts'
import { request } from './http.ts'

/**
 * How many requests of a route, by its pattern, a server has answered with a status. The log leaves out refusals
 * that repeat within a second; the metrics count all.
 */
export async function countAnswers(base: string, route: string, status: number): Promise<number> {
  const { text } = await request(`${base}/metrics`)
  const samples = readOpenMetrics(text).get('gatehouse_http_requests')?.samples ?? []
  const found = samples.find(
    ({ labels }) => labels.includes(`route="${route}"`) && labels.includes(`status="${status}"`),
  )
  return found?.value ?? 0
}
