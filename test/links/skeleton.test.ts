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
const { links } = await startServer(t, { services: ['links'] })

t.test('health and metrics answer', async (t) => {
  const health = await request(`${links}/healthz`)
  t.equal(health.status, 200)
  t.same(health.json(), { status: 'ok', database: 'ok', version })
  const head = await request(`${links}/healthz`, { method: 'HEAD' })
  t.match({ status: head.status, size: head.body.length }, { status: 200, size: 0 })
  const metrics = await request(`${links}/metrics`)
  t.match(metrics, { status: 200, headers: { 'content-type': /^application\/openmetrics-text/ } })
  t.ok(readOpenMetrics(metrics.text).has('gatehouse_http_requests'))
})

t.test('everything else says that it is not built, in the shape of the contract', async (t) => {
  const paths = [
    '/',
    '/docs',
    '/api/v1/links',
    '/api/v1/tags',
    '/-/',
    '/some-slug',
    '/webhooks/chat',
  ]
  for (const path of paths) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const response = await request(links + path, { method, headers: { Accept: 'text/html' } })
      t.match(response, { status: 501, headers: { 'content-type': 'application/json' } }, path)
      const body = response.json<Record<string, unknown>>()
      t.same(Object.keys(body), ['error', 'code'])
      t.match(body, { error: /links service is not built yet/, code: 'NOT_IMPLEMENTED' })
    }
  }
})

t.test('a wrong method is 405 with what is allowed', async (t) => {
  for (const path of ['/healthz', '/metrics']) {
    const response = await request(links + path, { method: 'POST' })
    t.match(response, { status: 405, headers: { allow: 'GET, HEAD' } }, path)
    t.match(response.json(), { error: /GET, HEAD/, code: 'METHOD_NOT_ALLOWED' })
  }
})
