import { randomBytes } from 'node:crypto'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { postForm } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { startOps } from '../helpers/ops.ts'
import { refuseAll } from '../helpers/refusals.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

type Made = { readonly id: number; readonly beat_url?: string; readonly definition: object }
type Change = { readonly id: number; readonly state: string; readonly ended_at: string | null }
type History = {
  readonly name: string
  readonly uptime: Readonly<Record<string, number | null>>
  readonly hours: readonly object[]
  readonly days: readonly { readonly runs: number; readonly failures: number }[]
  readonly changes: readonly Change[]
  readonly older: number | null
}

const GATEHOUSE_SECRET_KEY = randomBytes(32).toString('base64')
const shop = await startReceiver(t)
const ops = await startOps(t, postgres, { GATEHOUSE_SECRET_KEY })
const { api, base } = ops
const query = (text: string) => postgres.query(ops.env, text)
const page = async (path: string): Promise<string> => {
  const { text } = await request(base + path)
  return text.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')
}

await t.test(
  'a heartbeat that is made by hand gets an address, which is shown once',
  async (t) => {
    const check = { type: 'heartbeat', name: 'backup', period: '24h' }
    const { status, json } = await api<Made>('POST', '/checks', { service: 'jobs', check })
    t.equal(status, 201)
    const url = json.beat_url ?? ''
    t.match(url, new RegExp(`^${base}/beat/[\\w-]{32}$`))
    const token = url.split('/').at(-1) ?? ''
    t.match(json.definition, { token_sha256: /^[0-9a-f]{64}$/ })
    await until(async () => (await request(url)).status === 200, 'its address to be known')
    await until(async () => /called \d+ s ago/.test(await page(`/checks/${json.id}`)), 'the call')
    for (const path of [`/checks/${json.id}`, '/checks', `/api/v1/checks/${json.id}`]) {
      t.notMatch((await request(base + path)).text, token, path)
    }
    const fields = { service: 'jobs', type: 'heartbeat', name: 'report', period: '1h' }
    const made = await postForm(base, '/checks', fields)
    t.equal(made.status, 200, 'its answer shows the address')
    const [shown = ''] = /\/beat\/[\w-]{32}/.exec(made.text) ?? []
    await until(async () => (await request(base + shown)).status === 200, 'that address')
  },
)

await t.test('values of headers are sent, and never shown', async (t) => {
  const key = secret('key')
  const headers = { authorization: `Bearer ${key}` }
  const plain = { type: 'http', name: 'front', url: shop.url, headers, every: '24h' }
  const { json } = await api<Made>('POST', '/checks', { service: 'shop', check: plain })
  t.match(json.definition, { headers: { authorization: 'configured' } })
  await until(async () => shop.received.length > 0, 'the look')
  t.match(shop.received.at(-1)?.headers, headers)
  for (const path of [`/checks/${json.id}`, `/api/v1/checks/${json.id}`, '/checks', '/audit']) {
    t.notMatch((await request(base + path)).text, key, path)
  }
  const before = shop.received.length
  const kept = { ...plain, headers: { authorization: 'configured' } }
  t.equal((await api('PUT', `/checks/${json.id}`, { check: kept })).status, 200)
  await until(async () => shop.received.length > before, 'another look')
  t.match(shop.received.at(-1)?.headers, headers, 'a value that stays is stored still')
})

await t.test('the history of a check', async (t) => {
  const check = { type: 'memory', name: 'memory', max_percent: 100, every: '24h' }
  const { id } = (await api<Made>('POST', '/checks', { service: 'host', check })).json
  await until(async () => /Lasted.*lasts/.test(await page(`/checks/${id}`)), 'the first look')
  const young = await api<History>('GET', `/checks/${id}/history`)
  t.same(young.json.uptime, { 1: 1, 7: null, 30: null, 90: null }, 'nothing is said of a month')
  t.match(await page(`/checks/${id}`), /Up in 1 day 100 % of \S+ (?:s|min) .*Up in 7 days – /s)
  await query(
    `with hours as (
       insert into ops.check_counts
       select ${id}, 'hour', date_trunc('hour', now()) - n * interval '1 hour', 60, 6, 0, 10, 5, 500, 20
         from generate_series(1, 20) as n
     ), days as (
       insert into ops.check_counts
       select ${id}, 'day', date_trunc('day', now(), 'UTC') - n * interval '1 day', 100, 25, 3, 0, 5, 1000, 20
         from generate_series(1, 60) as n
     )
     insert into ops.check_periods (check_id, state, began_at, ended_at, message, last_message)
     select ${id}, 'fail', now() - n * interval '1 day', now() - n * interval '1 day' + interval '5 min',
            '97 % of the memory used', '99 % of the memory used'
       from generate_series(60, 1, -1) as n`,
  )
  const { json } = await api<History>('GET', `/checks/${id}/history`)
  t.match(json, { name: 'memory', changes: { length: 50 }, days: { length: 61 } })
  t.match(json.hours.at(-2), { runs: 60, failures: 6, unknown: 10, ms_min: 5, ms_mean: 10 })
  const day = json.uptime['1'] ?? 0
  t.ok(day > 0.87 && day < 0.9, `${day}: what was unknown does not count`)
  t.ok(Math.abs((json.uptime['90'] ?? 0) - 0.75) < 0.01)
  const older = await api<History>('GET', `/checks/${id}/history?before=${json.older}`)
  t.match(older.json, { changes: { length: 11 }, older: null })
  const ids = [...json.changes, ...older.json.changes].map((change) => change.id)
  t.equal(new Set(ids).size, 61, 'each change is on one page')

  const text = await page(`/checks/${id}`)
  t.match(text, /Up in 1 day 8\d\.\d\d % Up in 7 days/)
  t.match(text, /fail .* 5 min 0 s 97 % of the memory used; at its end: 99 % of the memory used/)
  t.match(text, /\d{4}-\d\d-\d\d \(UTC\): 75\.00 % up/, 'a day of the bar')
  t.match(text, /\d\d:00 UTC: 10 ms, from 5 to 20/, 'an hour of the line')
  t.match(text, /not checked/, 'and those without a look')
  t.match(await page('/checks?service=host'), /90 days .*75\.\d\d %/)
  const figures = [
    /gatehouse_ops_check_up\{service="jobs",name="backup"\} 1/,
    /gatehouse_ops_check_seconds\{service="shop",name="front"\} \d/,
  ]
  await until(
    async () => {
      const { text: metrics } = await request(`${base}/metrics`)
      return figures.every((figure) => figure.test(metrics))
    },
    'the figures to follow',
    30_000,
  )
})

await t.test('what is no history', async (t) => {
  const refuser = { service: 'ops', base, state: async () => [] } as const
  await refuseAll(t, refuser, [
    ['GET /api/v1/checks/999/history', 404, undefined, 'check not found'],
    ['GET /api/v1/checks/x/history', 400, undefined, 'the check id must be an integer'],
    ['GET /api/v1/checks/1/history?before=0', 400, undefined, /^before must be/],
    ['GET /api/v1/checks/1/history?before=x', 400, undefined, /^before must be/],
  ])
  t.equal((await request(`${base}/checks/999`)).status, 404)
})
