import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { CHAT_KEY, deliverAlert } from '../../helpers/alerts.ts'
import { ANN, changesLeave, command, PROXIED } from '../../helpers/audit.ts'
import { refuseCommands, runOk } from '../../helpers/cli.ts'
import { postForm } from '../../helpers/hooks.ts'
import { NAVIGATION } from '../../helpers/links.ts'
import { calls, says, startModelOps } from '../../helpers/model.ts'
import {
  ended,
  eventsOf,
  eventsOfSession,
  inventoryFile,
  listOf,
  runSession,
  sessionsOf,
} from '../../helpers/ops.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { refuseAll } from '../../helpers/refusals.ts'
import { until } from '../../helpers/until.ts'

type Paused = Readonly<{ paused: boolean } & Record<'since' | 'by', string | null>>
type Pause = { investigations: Paused; repairs: Paused }

const GOES_ON = { paused: false, since: null, by: null }
const NOTHING: Pause = { investigations: GOES_ON, repairs: GOES_ON }
const RESUMED = { investigations: false, repairs: false }
const FIELDS = { what: 'investigations', paused: 'true' }

const ran = join(await temporaryFolder(t, 'ran'), 'ran')
const restart = { name: 'restart', action_type: 'restart', argv: ['touch', ran] }
const { ops, model } = await startModelOps(t, {
  ...PROXIED,
  OPS_CHAT_API_KEY: CHAT_KEY,
  OPS_INVENTORY: await inventoryFile(t, {
    services: [{ name: 'shop', checks: [], operations: [restart] }],
  }),
})
const { api, base, env, page } = ops

const pauseOf = async () => (await api<Pause>('GET', '/pause')).json
const cli = (words: string) => runOk(`agent ${words}`, { env })
/** As another instance does it: the server has to look. */
const elsewhere = (...words: readonly string[]) => command(env, 0, 'agent', ...words)

await t.test('by page, command and API, with who did it', async (t) => {
  const ofAnn = { ...NAVIGATION, ...ANN }
  t.same(await pauseOf(), NOTHING)
  t.notMatch(await page('/config'), 'are paused')
  await changesLeave(t, env, 'ops', [
    [
      'API',
      async () => {
        const { json } = await api<Pause>('PUT', '/pause', { repairs: true })
        t.match(json, { repairs: { paused: true, since: /Z$/, by: 'anonymous' } })
        t.same(json, await pauseOf())
      },
      'anonymous: pause repairs',
    ],
    ['again', () => api('PUT', '/pause', { repairs: true })],
    [
      'form',
      () => postForm(base, '/pause', FIELDS, ofAnn),
      'ann@example.com: pause investigations',
    ],
    ['command', () => elsewhere('resume', 'repairs'), 'command: resume repairs'],
    ['command: all', () => elsewhere('pause'), 'command: pause repairs'],
    [
      'command: both named',
      () => elsewhere('resume', 'investigations', 'repairs'),
      'command: resume investigations',
      'command: resume repairs',
    ],
  ])
  t.same(await pauseOf(), NOTHING)
})

await t.test('what the command prints', async (t) => {
  t.match(await cli('pause all --json'), {
    stdout: /^\{"investigations":\{"paused":true,"since":"\S+Z","by":"command"\}/,
    stderr: /^investigations are paused since \S+Z by command\nrepairs are paused since /,
  })
  t.match(await cli('paused'), { stdout: /^investigations +yes +\S+Z +command$/m })
  t.match(await cli('resume repairs'), { stdout: '', stderr: 'repairs go on\n' })
  await cli('resume')
  await refuseCommands(t, { env, state: pauseOf }, [
    ['agent pause everything', 2, 'WHAT must be investigations, repairs or all'],
    ['agent stop', 2, 'Unknown action "stop", expected one of pause, resume, paused'],
  ])
})

await t.test('refusals change nothing', async (t) => {
  await refuseAll(t, { service: 'ops', base, state: pauseOf }, [
    [{ call: 'PUT /api/v1/pause', body: {} }, 400, /must name investigations/],
    [{ call: 'PUT /api/v1/pause', body: { repairs: 'yes' } }, 400, /^repairs must be/],
    [{ call: 'PUT /api/v1/pause', body: { repairs: true }, headers: { origin: 'http://x' } }, 403],
  ])
  for (const fields of [{ what: 'all', paused: 'true' }, { what: 'repairs' }]) {
    t.equal((await postForm(base, '/pause', fields, NAVIGATION)).status, 400)
  }
  t.same(await pauseOf(), NOTHING)
})

await t.test('pages say what is paused', async (t) => {
  await elsewhere('pause', 'investigations')
  const isShown = async () => /class="connection health bad"/.test(await page('/config'))
  await until(isShown, 'the banner', 30_000, 250)
  const text = await page('/')
  t.match(text, /Investigations are paused since [^]* by\s+<bdi>command<\/bdi>/)
  t.match(text, /name="what" value="investigations"[^]*Resume investigations/, 'a button resumes')
  await api('PUT', '/pause', { investigations: false, repairs: true })
  t.match(await page('/config'), /class="connection health warn"[^]*Repairs are paused/)
  await api('PUT', '/pause', RESUMED)
  t.notMatch(await page('/config'), 'are paused')
})

await t.test('investigations: nothing starts by itself', async (t) => {
  model.answer(['All is well.'])
  const before = (await sessionsOf(ops))[0]?.id
  await elsewhere('pause', 'investigations')

  await t.test('no alert: it is kept, with the reason', async (t) => {
    const asked = model.asked.length
    const message = 'investigations are paused; the alert is kept, and nothing was started'
    const json = { session_id: null, status: 'acknowledged', message }
    const answer = await deliverAlert(base, '{"title":"web-1 is down"}')
    t.match(answer, { status: 202, json })
    t.equal(model.asked.length, asked, 'no brief is written')
    const [row] = await ops.query('select outcome, problem from ops.alerts')
    t.match(row, { outcome: 'acknowledged', problem: 'investigations are paused since' })
    t.match(await page('/waiting'), /web-1 is down[^]*investigations are paused/)
    t.equal((await sessionsOf(ops))[0]?.id, before)
  })

  await t.test('no scheduled session', async (t) => {
    const left = 'scheduled session left out: investigations are paused'
    await api('PUT', '/config', { interval: 1 })
    await until(() => ops.server.logs().some((line) => line.includes(left)), 'one left out')
    await api('PUT', '/config', { interval: 3_600 })
    t.equal((await sessionsOf(ops))[0]?.id, before)
  })

  await t.test('a person starts one, which escalates to nobody', async (t) => {
    const told: string[] = []
    model.answer(({ results, step }) => {
      told.push(...results)
      const args = { reason: 'odd', findings: 'the disk is full' }
      return step === 0 ? calls(['escalate', args]) : says('Done.')
    })
    const session = await runSession(ops)
    t.match(session, { status: 'completed', tier: 1 })
    t.match(told, [/^Not escalated \(investigations are paused since .*\); it was recorded/])
    const [event] = await eventsOfSession(ops, session.id)
    t.match(event, { level: 'warning', message: /did not \(investigations are paused .*\): odd/ })
    model.answer(['Well.'])
    const fields = { prompt: 'look', tier: 'auto' }
    const form = await postForm(base, '/sessions/trigger', fields, { 'HX-Request': 'true' })
    t.match(form, {
      status: 200,
      text: /has begun\.[\s\S]*Investigations are paused: the session escalates/,
    })
    t.match(await ended(ops), { trigger: 'manual', status: 'completed' })
  })

  await api('PUT', '/pause', { investigations: false })
})

await t.test('repairs: no operation runs, and the model is told so', async (t) => {
  const told: string[] = []
  const operation = { service: 'shop', operation: 'restart', reason: 'it hangs' }
  model.answer(async ({ results, step }) => {
    told.push(...results)
    if (step < 2) await elsewhere(step === 0 ? 'pause' : 'resume', 'repairs')
    return step < 2 ? calls(['run_operation', operation]) : says('Done.')
  })
  t.match(await runSession(ops, 'look', 3), { tier: 3, status: 'completed' })
  const refused = /^Error: Paused: restart was not run: repairs are paused since \S+ by command\.$/
  t.match(told, [refused, 'restart: ended with 0'])
  t.ok(existsSync(ran), 'it runs once repairs are resumed')
  t.match(await listOf(ops, 'cooldowns'), [{ service: 'shop', action_type: 'restart', count: 1 }])
  const warnings = await eventsOf(ops, '?level=warning&service=shop')
  t.match(warnings, [{ message: 'restart was not run: repairs are paused since' }])
})
