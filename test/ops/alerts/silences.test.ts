import { t } from 'tap'
import {
  alertmanager,
  CHAT_KEY,
  deliverAlert,
  keptAs,
  startBriefs,
  timePasses,
  type ShownAlert,
} from '../../helpers/alerts.ts'
import { auditOf } from '../../helpers/audit.ts'
import { postgres } from '../../helpers/backends.ts'
import { refuseCommands, runCli } from '../../helpers/cli.ts'
import { leadsTo } from '../../helpers/http.ts'
import { postForm } from '../../helpers/hooks.ts'
import { NAVIGATION } from '../../helpers/links.ts'
import { ended, listOf, sessionsOf, startGate, startOps } from '../../helpers/ops.ts'
import { expectStatus, refuseAll, type Refusal } from '../../helpers/refusals.ts'
import { until } from '../../helpers/until.ts'

type Silence = Readonly<
  Record<'starts_at' | 'ends_at' | 'reason' | 'author', string> & { id: number; match: object }
>

const gate = await startGate(t)
const briefs = await startBriefs(t)
gate.open()
const ops = await startOps(t, postgres, {
  OPS_CHAT_API_KEY: CHAT_KEY,
  OPS_INVENTORY: gate.inventory,
  ...briefs.env,
})
await ended(ops)
const { api, base, env } = ops
const second = await startOps(t, postgres, env)

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const HOUR = 3_600_000
const later = () => inMs(HOUR)

async function silence(match: object, more: object = {}) {
  const body = { match, ends_at: later(), reason: 'the shop moves', ...more }
  return (await expectStatus(201, api<Silence>('POST', '/silences', body))).json
}

const silences = () => listOf<Silence>(ops, 'silences')

async function endAll() {
  for (const { id } of await silences()) await api('DELETE', `/silences/${id}`)
}

async function alertOf(title: string) {
  const alerts = await listOf<ShownAlert>(ops, 'alerts?limit=500')
  return alerts.find((alert) => alert.title === title)
}

const outcomeOf = async (title: string) => (await alertOf(title))?.outcome

/** Waits until an alert has led to a session that has ended. */
async function lookedInto(title: string) {
  await until(async () => (await outcomeOf(title)) === 'triggered', `${title} to be looked into`)
  await ended(ops)
}

async function alertSessions() {
  return (await sessionsOf(ops)).filter(({ trigger }) => trigger === 'alert').length
}

await t.test(
  'an alert that matches is kept, and looked at once when the silence ends',
  async (t) => {
    const match = { service: 'shop', alertname: 'Disk*' }
    const made = await silence(match)
    t.match(made, { match, reason: 'the shop moves', author: 'operator' })
    t.same(await silences(), [made])
    const deliver = async (body: string, to = base) => (await deliverAlert(to, body)).json
    const disk = alertmanager('DiskFull', 'firing', { service: 'shop' })
    const silenced = keptAs(`silenced until ${made.ends_at} by silence ${made.id}`)
    t.same(await deliver(disk), silenced)
    t.same(await deliver(disk, second.base), silenced, 'at each instance')
    t.match(await alertOf('DiskFull'), { outcome: 'silenced', count: 2, session_id: null })
    const gone = alertmanager('DiskGone', 'firing', { service: 'shop' })
    t.same(await deliver(gone), silenced)
    t.same(await deliver(gone.replaceAll('firing', 'resolved')), silenced)
    t.equal(await alertSessions(), 0)

    await expectStatus(204, api('DELETE', `/silences/${made.id}`))
    await timePasses(postgres, env, 1)
    await lookedInto('DiskFull')
    await timePasses(postgres, env, 60)
    t.equal(await alertSessions(), 1, 'once, and what has resolved is not looked at')
    t.equal(await outcomeOf('DiskGone'), 'silenced')
  },
)

await t.test('what matches', async (t) => {
  const rows = [
    [{ service: 'shop' }, { service: 'shop' }, true],
    [{ service: 'shop' }, { service: 'shop2' }, false],
    [{ service: 'shop', severity: 'page' }, { service: 'shop', severity: 'info' }, false],
    [{ alertname: 'M*-*h' }, {}, true],
    [{ alertname: 'm*' }, {}, false],
    [{ source: 'alertmanager', title: 'M-*' }, {}, true],
    [{ instance: 'db-*:9100' }, { instance: 'db-1:9100' }, true],
    [{ constructor: '*' }, {}, false],
  ] as const
  // A session that runs: what is not silenced is acknowledged as the contract has it.
  gate.shut()
  await api('POST', '/sessions/trigger', { prompt: 'busy' })
  await until(() => gate.waiting() > 0, 'the session to be held up')
  for (const [at, [match, labels, isSilenced]] of rows.entries()) {
    await silence(match)
    const { json } = await deliverAlert(base, alertmanager(`M-${at}-h`, 'firing', labels))
    t.equal(json.detail?.startsWith('silenced until ') ?? false, isSilenced, JSON.stringify(match))
    await endAll()
  }
  await ops.query(`update ops.alerts set state = 'resolved' where outcome = 'silenced'`)

  await t.test('a plain body by its title; a silence to come does nothing yet', async (t) => {
    await silence({ alertname: 'backup *' }, { starts_at: inMs(HOUR), ends_at: inMs(2 * HOUR) })
    const backup = () => deliverAlert(base, 'backup failed')
    t.equal((await backup()).json.detail, undefined)
    await timePasses(postgres, env, 3_700)
    t.match(await backup(), { json: { detail: 'silenced until ' } })
    await silence({ alertname: 'backup failed' }, { ends_at: inMs(3 * HOUR) })
    await timePasses(postgres, env, 3_600)
    t.equal(await outcomeOf('backup failed'), 'silenced', 'the next one holds it back')
  })
  gate.open()
  await ended(ops)
  await timePasses(postgres, env, 24 * 3_600)
  await lookedInto('backup failed')
  t.same(await silences(), [])
})

await t.test('bad input changes nothing', async (t) => {
  const made = await silence({ service: 'shop' })
  const of = (more: object) => {
    const body = { match: { service: 'x' }, ends_at: later(), reason: 'r', ...more }
    return { call: 'POST /api/v1/silences', body }
  }
  const eleven = Object.fromEntries(Array.from({ length: 11 }, (_, at) => [`l${at}`, 'x']))
  const match =
    'match must name 1 to 10 labels with their values, such as {"service": "shop"}, each of 1 to 200 characters'
  const time = 'must be a time with its zone such as 2027-01-31T12:00:00Z'
  const rows = [
    [{ ends_at: inMs(-1_000) }, 'ends_at must be in the future'],
    [{ ends_at: undefined }, `ends_at is required and ${time}`],
    [{ ends_at: '2099-01-01T00:00:00Z' }, 'ends_at must be within a year of the beginning'],
    [{ starts_at: inMs(2 * HOUR) }, 'ends_at must be after starts_at'],
    [{ starts_at: '2027-02-30T00:00:00Z' }, `starts_at ${time}`],
    [{ match: {} }, match],
    [{ match: { service: 7 } }, match],
    [{ match: { service: 'x'.repeat(201) } }, match],
    [{ match: eleven }, match],
    [{ reason: '' }, 'reason must say why, in 1 to 500 characters'],
    [{ reason: 'x'.repeat(501) }, 'reason must say why, in 1 to 500 characters'],
  ] as const
  await refuseAll(t, { service: 'ops', base, state: silences }, [
    ...rows.map(([more, text]): Refusal => [of(more), 400, undefined, text]),
    ['DELETE /api/v1/silences/999', 404, undefined, 'silence not found'],
  ])
  t.same(await silences(), [made])
  await endAll()
  t.match(await api('DELETE', `/silences/${made.id}`), { status: 404 }, 'one that is over')
  await ops.query(
    `insert into ops.silences (match, starts_at, ends_at, reason, author)
     select '{"service": "many"}', now(), now() + interval '1 hour', 'r', 'test' from generate_series(1, 200)`,
  )
  await refuseAll(t, { service: 'ops', base, state: silences }, [
    [of({}), 409, undefined, 'there are 200 silences already: end one first'],
  ])
  await ops.query('delete from ops.silences')
})

await t.test('the page, without script', async (t) => {
  const { page } = ops
  const post = (path: string, fields = {}) => postForm(base, path, fields, NAVIGATION)
  t.match(await page('/alerts'), 'href="/silences"')
  t.match(await page('/silences'), /No silences\.[\s\S]*New silence/)
  const alert = await alertOf('DiskFull')
  t.match(await page(`/alerts/${alert?.id}`), `href="/silences?alert=${alert?.id}"`)
  const filled = '>\nservice=shop\nalertname=DiskFull</textarea>'
  t.match(await page(`/silences?alert=${alert?.id}`), filled)
  const fields = { match: 'service=shop\nalertname = Disk*', for: '2h', reason: 'it moves' }
  t.equal(leadsTo(await expectStatus(303, post('/silences', fields))), '/silences')
  const [one] = await silences()
  t.match(one, { match: { service: 'shop', alertname: 'Disk*' }, reason: 'it moves' })
  t.equal(Date.parse(one?.ends_at ?? '') - Date.parse(one?.starts_at ?? ''), 2 * HOUR)
  t.match(
    await page('/silences'),
    /service=shop alertname=Disk\*[\s\S]*silenced now[\s\S]*End now/,
  )
  for (const [more, text] of [
    [{ match: 'shop' }, 'each line, such as service=shop'],
    [{ for: '' }, 'for or ends at must be given'],
    [{ ends_at: later() }, 'not both'],
    [{ for: 'long' }, 'a whole number with s, m, h or d'],
  ] as const) {
    const refused = await expectStatus(400, post('/silences', { ...fields, ...more }))
    t.match(refused.text.toLowerCase(), text)
  }
  t.equal((await silences()).length, 1)
  await expectStatus(303, post(`/silences/${one?.id}/delete`))
  t.match(await page('/silences'), 'No silences.')
})

await t.test('the command, and who changed what', async (t) => {
  const run = (...words: readonly string[]) => runCli(['silences', ...words], { env })
  const labels = ['--match', 'service=shop', '--match', 'alertname=Disk*']
  const added = await run('add', ...labels, '--for', '2h', '--reason', 'it moves', '--json')
  t.equal(added.code, 0)
  const made: Silence = JSON.parse(added.stdout)
  t.match(made, { match: { service: 'shop', alertname: 'Disk*' }, author: 'command' })
  t.match(added.stderr, `silence ${made.id}: service=shop alertname=Disk* until ${made.ends_at}`)
  t.match((await run('list')).stdout, /ID +MATCH[\s\S]*service=shop alertname=Disk\*/)
  t.same(JSON.parse((await run('list', '--json')).stdout), [made])
  await refuseCommands(t, { env, state: silences }, [
    [['silences', 'add', '--for', '2h', '--reason', 'r'], 2, '--match is required'],
    [['silences', 'remove', '999'], 1, 'silence not found'],
  ])
  const removed = await run('remove', String(made.id))
  t.match(removed, { code: 0, stderr: `silence ${made.id} is over` })
  t.same(await silences(), [])
  const lines = await auditOf(env)
  const changes = lines.filter(({ action }) => action.startsWith('silence '))
  const change = { actor: 'command', subject: 'service=shop alertname=Disk*' }
  t.match(changes.slice(0, 2), [
    { ...change, action: 'silence end' },
    { ...change, action: 'silence add' },
  ])
})
