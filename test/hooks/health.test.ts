import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { readOpenMetrics } from '../fixtures/open-metrics.ts'
import { backends, eachBackend } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { ROOT } from '../helpers/program.ts'
import { deliver, post, startHooks } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

const manifest: { version: string } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

await eachBackend(t, 'health and metrics', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend)

  await t.test('GET /healthz', async (t) => {
    const { status, headers, ...response } = await request(`${base}/healthz`)
    t.equal(status, 200)
    t.match(headers, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    t.same(response.json(), {
      status: 'ok',
      db: 'ok',
      broker: 'disabled',
      database: 'ok',
      version: manifest.version,
    })
    const browser = await request(`${base}/healthz`, { headers: { Accept: 'text/html' } })
    t.equal(browser.headers['content-type'], 'application/json', 'a probe is no page')
    const strange = await request(`${base}/healthz`, { headers: { Host: 'probe.example' } })
    t.equal(strange.status, 200, 'public: any Host')
    const head = await request(`${base}/healthz`, { method: 'HEAD' })
    t.match({ status: head.status, size: head.body.length }, { status: 200, size: 0 })
    const wrong = await request(`${base}/healthz`, { method: 'POST' })
    t.match(wrong, { status: 405, headers: { allow: 'GET, HEAD' } })
    t.match(wrong.json(), { type: 'about:blank', status: 405, instance: '/healthz' })
  })

  await t.test('GET /metrics', async (t) => {
    t.equal((await deliver(base, 'code_host', '{"a":1}')).status, 202)
    t.equal((await post(base, 'code_host', '{"a":2}')).status, 401)
    const { status, headers, text } = await request(`${base}/metrics`)
    t.equal(status, 200)
    t.match(
      headers['content-type'],
      /^application\/openmetrics-text; version=1\.0\.0; charset=utf-8$/,
    )
    const families = readOpenMetrics(text)
    const requests = families.get('gatehouse_http_requests')
    t.equal(requests?.type, 'counter')
    const route = 'route="/webhooks/:provider"'
    const of = (code: number): number | undefined =>
      requests?.samples.find(({ labels }) => labels.includes(route) && labels.includes(`"${code}"`))
        ?.value
    t.equal(of(202), 1, 'the pattern, not the path, and the status')
    t.equal(of(401), 1)
    const refused = families.get('gatehouse_hooks_rejections')?.samples
    t.match(refused, [{ name: 'gatehouse_hooks_rejections_total', value: 1 }])
    const times = families.get('gatehouse_http_request_seconds')?.samples ?? []
    const buckets = times.filter(({ name }) => name.endsWith('_bucket')).map(({ value }) => value)
    t.same(
      buckets,
      buckets.toSorted((a, b) => a - b),
      'buckets are cumulative',
    )
    const count = times.find(({ name }) => name.endsWith('_count'))?.value
    t.equal(times.find(({ labels }) => labels.includes('le="+Inf"'))?.value, count)
    const strange = await request(`${base}/metrics`, { headers: { Host: 'other.example' } })
    t.equal(strange.status, 403, 'guarded: only our own Host')
  })
})

t.test(
  'a status that can’t be read for another reason than the database is in the log',
  async (t) => {
    const [, postgres] = backends
    const { base, server, env } = await startHooks(t, postgres)
    await postgres.query(env, 'alter table hooks.refusals rename to refusals_away')
    t.equal((await request(`${base}/`)).status, 503)
    const line = await until(
      () => server.logs().find((text) => text.includes('"status not read"')),
      'the line',
    )
    t.match(JSON.parse(line), {
      level: 'error',
      error: /refusals/,
      stack: /readProviders|status\.ts/,
    })
  },
)
