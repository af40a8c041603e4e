import { createServer, type AddressInfo } from 'node:net'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { postForm } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { NAVIGATION } from '../helpers/links.ts'
import { startModel } from '../helpers/model.ts'
import { ended, inventoryFile, sessionsOf, startOps } from '../helpers/ops.ts'
import { until } from '../helpers/until.ts'

type Listed = { readonly id: number; readonly name: string; readonly state: string }
type Shown = Listed & { readonly definition: object | null }

const [, postgres] = backends
const model = await startModel(t)
const listener = createServer((socket) => socket.destroy())
await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
t.teardown(() => void listener.close())
const { port } = listener.address() as AddressInfo
const closed = { type: 'tcp', host: '127.0.0.1', port: 1, retries: 0, every: '10s' }
const ops = await startOps(t, postgres, {
  ...model.env,
  OPS_INVENTORY: await inventoryFile(t, {
    services: [
      {
        name: 'shop',
        investigate: 2,
        checks: [
          { ...closed, name: 'front' },
          { ...closed, name: 'quiet', investigate: false },
          { type: 'memory', name: 'memory' },
        ],
      },
      { name: 'blog', checks: [{ ...closed, name: 'page' }] },
    ],
  }),
})
const { api, base, env } = ops
await ended(ops)

const listed = async (name: string): Promise<Listed> => {
  const { json } = await api<{ checks: readonly Listed[] }>('GET', '/checks')
  return json.checks.find((check) => check.name === name) ?? { id: 0, name, state: 'none' }
}
const pageOf = async (name: string): Promise<string> =>
  (await request(`${base}/checks/${(await listed(name)).id}`)).text
const shows = async (path: string): Promise<string> => (await request(base + path)).text
const newest = async () => (await sessionsOf(ops, '?limit=1'))[0]
/** As if the failures had been told a while ago. */
const letPass = () =>
  postgres.query(env, `update ops.checks set told_at = told_at - interval '1 minute'`)

await until(async () => {
  const states = await Promise.all(['front', 'quiet', 'page'].map(listed))
  return states.every(({ state }) => state === 'fail')
}, 'the failures')

await t.test('what is marked waits, and pages say why', async (t) => {
  await api('PUT', '/pause', { investigations: true })
  const paused = /It waits: investigations are paused since \S+ by operator\./
  t.match(await pageOf('front'), /A failure starts a session at tier 2/)
  t.match(await pageOf('front'), paused)
  t.notMatch(await pageOf('quiet'), /starts a session/, 'one that says otherwise')
  t.notMatch(await pageOf('page'), /starts a session/, 'one of another service')
  t.match(await pageOf('memory'), /A failure starts a session at tier 2/)
  t.notMatch(await pageOf('memory'), /It waits/)
  const line = /1 failing check waits for a\s+session: investigations are paused[^]*shop: front/
  t.match(await shows('/'), line)
  await letPass()
  await api('PUT', '/pause', { investigations: false })
})

await t.test('its session is told what is known, as data', async (t) => {
  const session = await until(async () => {
    const one = await newest()
    return one?.trigger === 'alert' && one
  }, 'the session')
  t.match(await ended(ops, session.id), { tier: 2, status: 'completed' })
  const asked = model.asked.at(-1)?.prompt ?? ''
  const [, inside = ''] = /^ALERT-[0-9a-f]{32}\n([^]*)\nALERT-[0-9a-f]{32}$/m.exec(asked) ?? []
  t.equal(inside, session.prompt_text)
  t.match(
    inside,
    /^1 check is told as failing:\n- shop\/front: connection refused \(since \S+Z\)$/m,
  )
  t.match(inside, /^- \S+Z operator: ops: pause investigations$/m, 'what changed')
  t.match(inside, /^- \S+Z check shop\/quiet became fail: connection refused$/m)
  t.match(
    inside,
    /^shop\/front: tcp, every 10s\nUp: 1 d 0\.00 % of \d+(?:s|m|h), 7 d not watched, /m,
  )
  t.match(inside, /^Last results:\n- \S+Z fail \(\d+ ms\): connection refused$/m)
  t.match(inside, /^Its states:\n- fail from \S+Z to now: connection refused$/m)

  t.match(await shows('/alerts'), /shop\/front fails: connection refused[^]*gatehouse/)
  const { json } = await api<{ alerts: readonly Record<string, unknown>[] }>('GET', '/alerts')
  const alert = json.alerts.find(({ title }) => String(title).startsWith('shop/front fails'))
  const labels = { alertname: 'front', check: 'front', service: 'shop' }
  t.match(alert, { labels }, 'a silence can name it')
  const [check] = await postgres.query(
    ops.env,
    "select since from ops.checks where name = 'front'",
  )
  const since = check?.['since'] as Date
  t.equal(alert?.['firing_since'], since.toISOString())
  const last = new RegExp(`the last one, <a href="/sessions/${session.id}">`)
  t.match(await pageOf('front'), last)
  t.notMatch(await pageOf('front'), /It waits/)
  t.notMatch(await shows('/'), /waits for a\s+session/)
})

await t.test('one that is made by hand, on each face', async (t) => {
  const add = (check: object) => api<Shown>('POST', '/checks', { service: 'store', check })
  const check = { type: 'tcp', host: '127.0.0.1', port, every: '10s' }
  const made = await add({ ...check, name: 'api', investigate: 3 })
  t.match([made.status, made.json.definition], [201, { investigate: 3 }])
  const words = 'checks add cli --service store --type tcp --host 127.0.0.1 --investigate true'
  const cli = await runCli([...words.split(' '), '--port', String(port)], { env })
  t.equal(cli.code, 0)
  const fields = { host: '127.0.0.1', port: String(port), type: 'tcp', service: 'store' }
  const marked = { ...fields, name: 'form', investigate: '2' }
  const form = await postForm(base, '/checks', marked, NAVIGATION)
  t.equal(form.status, 303)
  for (const [name, tier, value] of [
    ['api', 3, 3],
    ['cli', 1, true],
    ['form', 2, 2],
  ] as const) {
    const { json } = await api<Shown>('GET', `/checks/${(await listed(name)).id}`)
    t.match(json.definition, { investigate: value })
    await until(
      async () => (await pageOf(name)).includes(`starts a session at tier ${tier}`),
      `the mark of ${name}`,
    )
    t.match(await pageOf(name), `<option value="${value}" selected>`)
  }
  await runCli(['checks', 'set', 'store/cli', '--without', 'investigate'], { env })
  await until(async () => !/starts a session/.test(await pageOf('cli')), 'no mark')
})
