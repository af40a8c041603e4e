import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { readOpenMetrics } from '../fixtures/open-metrics.ts'
import { request } from '../helpers/http.ts'
import { ROOT } from '../helpers/program.ts'
import { startServer } from '../helpers/server.ts'

const { version }: { version: string } = JSON.parse(
  readFileSync(join(ROOT, 'package.json'), 'utf8'),
)
const { ops } = await startServer(t, { services: ['ops'] })

t.test('health and metrics answer', async (t) => {
  const health = await request(`${ops}/healthz`)
  t.equal(health.status, 200)
  t.same(health.json(), { status: 'ok', database: 'ok', version })
  const api = await request(`${ops}/api/v1/health`)
  t.match(api, { status: 200, headers: { 'content-type': 'application/json' } })
  t.same(api.json(), { status: 'ok' })
  const head = await request(`${ops}/api/v1/health`, { method: 'HEAD' })
  t.match({ status: head.status, size: head.body.length }, { status: 200, size: 0 })
  const metrics = await request(`${ops}/metrics`)
  t.match(metrics, { status: 200, headers: { 'content-type': /^application\/openmetrics-text/ } })
  t.ok(readOpenMetrics(metrics.text).has('gatehouse_http_requests'))
})

t.test('a wrong method outside the API is 405 with what is allowed', async (t) => {
  for (const path of ['/healthz', '/metrics']) {
    const response = await request(ops + path, { method: 'POST' })
    t.match(response, { status: 405, headers: { allow: 'GET, HEAD' } }, path)
    t.same(Object.keys(response.json<object>()), ['error'])
  }
})

t.test('under the API a wrong method matches no route, as an unknown path', async (t) => {
  for (const [method, path] of [
    ['POST', '/api/v1/events'],
    ['PATCH', '/api/v1/config'],
    ['GET', '/api/v1/memories/1'],
    ['GET', '/api/v1/nothing'],
  ] as const) {
    const response = await request(ops + path, { method, headers: { Accept: 'text/html' } })
    t.match(response, { status: 404, headers: { 'content-type': 'application/json' } }, path)
    t.same(Object.keys(response.json<object>()), ['error'])
    t.notOk(response.headers.allow)
  }
})
