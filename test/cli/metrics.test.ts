import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { readOpenMetrics } from '../fixtures/open-metrics.ts'
import { postgres } from '../helpers/backends.ts'
import { runOk } from '../helpers/cli.ts'
import { createSender, keepAlive, metricOf, send } from '../helpers/deliveries.ts'
import { allIn, request } from '../helpers/http.ts'
import { freePort } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { expectStatus } from '../helpers/refusals.ts'

const manual = readFileSync(join(ROOT, 'docs/metrics.md'), 'utf8')

/** Type and labels by the name that a query is written with. */
function documented() {
  const [, table = ''] = manual.split('| metric | type | labels | |\n')
  const [rows = ''] = table.split('\n\n')
  return new Map(
    rows
      .split('\n')
      .slice(1)
      .map((row) => {
        const [, name = '', type = '', labels = ''] = row.split('|').map((cell) => cell.trim())
        const names = allIn(labels, /`(\w+)`/g)
        return [name.replaceAll('`', ''), { type, labels: names }]
      }),
  )
}

t.test('the manual has every metric with its type and labels, and no other', async (t) => {
  const env = {
    ...(await postgres.env(t)),
    HOOKS_CODE_HOST_SECRET: secret('metrics-code-host'),
    // The queue's metric is there only with a queue; nobody listens at this one.
    HOOKS_QUEUE_URL: `redis://127.0.0.1:${await freePort()}`,
    HOOKS_QUEUE_CHANNELS: 'orders',
  }
  await runOk('provider alarm code_host --expect 1h', { env })
  const server = await startServer(t, { env })
  await request(`${server.hooks}/webhooks/code_host`, { method: 'POST', body: '{}' })
  await request(`${server.hooks}/healthz`)
  await request(`${server.links}/nothing`)
  const text = await until(async () => {
    const page = await request(`${server.ops}/metrics`)
    return page.text.includes('gatehouse_hooks_alarm{') && page.text
  }, 'the alarm to be looked at')

  const known = documented()
  t.ok(known.size > 10, 'the table was found')
  const families = readOpenMetrics(text)
  const names = [...families].map(([name, { type }]) =>
    type === 'counter' ? `${name}_total` : name,
  )
  t.same(names.toSorted(), [...known.keys()].toSorted())
  let checked = 0
  for (const [family, { type, samples }] of families) {
    const row = known.get(type === 'counter' ? `${family}_total` : family)
    t.equal(row?.type, type, family)
    for (const { name, labels } of samples) {
      const used = allIn(labels, /(\w+)="/g)
      t.same(
        used.filter((label) => label !== 'le'),
        row?.labels,
        `labels of ${name}`,
      )
      checked++
    }
  }
  t.ok(checked > 20, 'many have series')
  t.match(text, /^gatehouse_hooks_rejections_total\{/m)
  t.notMatch(text, /^gatehouse_database_(checkpoints|vacuums)_total/m, 'of the embedded one only')
})

t.test('figures of the process and of its database', async (t) => {
  const sender = createSender()
  const env = { ...(await postgres.env(t)), ...sender.env }
  const server = await startServer(t, { env })
  const agent = keepAlive(t, 1)
  await expectStatus(202, send(agent, server.hooks, await sender.delivery()))
  const figures = async () => (await request(`${server.hooks}/metrics`)).text
  const first = await figures()
  for (const [name, bound] of Object.entries({
    process_resident_memory_bytes: 50 * 2 ** 20,
    process_open_fds: 10,
    'gatehouse_database_statement_seconds_count{level="deliveries"}': 1,
  })) {
    const value = metricOf(first, name) ?? 0
    t.ok(value >= bound, `${name} is ${value}`)
  }
  for (const level of ['deliveries', 'trusted', 'upkeep', 'strangers', 'extras']) {
    t.equal(metricOf(first, `gatehouse_database_refused_total{level="${level}"}`), 0)
  }
  t.equal(metricOf(first, 'gatehouse_database_reconnects_total'), 0)
  const lags = 'gatehouse_event_loop_lag_seconds_count'
  await until(async () => {
    return (metricOf(await figures(), lags) ?? 0) > (metricOf(first, lags) ?? 0)
  }, 'the lag to be measured again')
})
