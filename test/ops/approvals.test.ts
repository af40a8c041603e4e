import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { t } from 'tap'
import type { Test } from 'tap'
import { processesWith } from '../helpers/agents.ts'
import { auditOf } from '../helpers/audit.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { refuseCommands, runCli, runCliProcess } from '../helpers/cli.ts'
import { leadsTo, request } from '../helpers/http.ts'
import { calls, inTier, says, startModel } from '../helpers/model.ts'
import type { Call } from '../helpers/model.ts'
import {
  ended,
  eventsOf,
  inventoryFile,
  startOps,
  startOpsProcess,
  trigger,
  type OpsServer,
} from '../helpers/ops.ts'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
import { refuseAll } from '../helpers/refusals.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

// Operations that wait for a person (decisions.md section 7): nothing runs without the yes, and all runs once.

const [, postgres] = backends
const KEY = secret('chat-key')
const MARKER = 'STARTED_BY_GATEHOUSE'

type Approval = {
  readonly id: number
  readonly status: string
  readonly service: string
  readonly operation: string
  readonly argv: readonly string[]
  readonly reason: string
  readonly session_id: number | null
  readonly decided_by: string | null
  readonly outcome: string | null
}

/** Operations that write a line to a file: what has run can be read there. */
async function makePlant(t: Owner) {
  const folder = await temporaryFolder(t, 'approvals')
  const file = join(folder, 'ran.txt')
  const writes = (line: string) => ['sh', '-c', `echo "$2" >> "$1"`, 'sh', file, line]
  const one = (name: string, more: object = {}) => ({
    ...{ name, action_type: name, argv: writes(name), approval: true, ...more },
  })
  const checks = [{ type: 'file_age', name: 'written', path: file, max_age_s: 600 }]
  const operations = [
    one('restart', { verify: 'written' }),
    one('move'),
    one('flush', { cooldown: { count: 1, window_s: 3_600 } }),
    one('clean'),
    one('secret', { argv: writes(KEY) }),
    one('broken', { argv: ['sh', '-c', 'exit 3'] }),
    one('free', {
      approval: false,
      action_type: 'flush',
      cooldown: { count: 9, window_s: 3_600 },
    }),
  ]
  const inventory = { services: [{ name: 'shop', checks, operations }] }
  const path = await inventoryFile(t, inventory)
  return {
    path,
    ran: () => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []),
    /** Changes the command of an operation. */
    change(name: string) {
      const changed = operations.map((row) =>
        row.name === name ? one(name, { argv: writes('other') }) : row,
      )
      writeFileSync(
        path,
        JSON.stringify({ services: [{ name: 'shop', checks, operations: changed }] }),
      )
    },
  }
}

function operation(name: string): Call {
  return ['run_operation', { service: 'shop', operation: name, reason: `it hangs <b>${name}</b>` }]
}

/** Has a session of tier 3 call operations, and gives what it was told. */
async function ask(
  ops: Pick<OpsServer, 'api'>,
  model: Awaited<ReturnType<typeof startModel>>,
  ...names: readonly string[]
) {
  let told: readonly string[] = []
  model.answer(
    inTier(3, ({ results, step }) => {
      if (step > 0) told = results
      return step === 0 ? calls(...names.map(operation)) : says('It waits.')
    }),
  )
  await trigger(ops)
  const session = await ended(ops)
  const { tier, status } = session
  if (tier !== 3 || status !== 'completed') throw new Error(`tier ${tier} has ${status}`)
  return { told, session }
}

async function approvalsOf({ api }: Pick<OpsServer, 'api'>): Promise<readonly Approval[]> {
  return (await api<{ approvals: readonly Approval[] }>('GET', '/approvals')).json.approvals
}

async function approvalOf(ops: Pick<OpsServer, 'api'>, name: string): Promise<Approval> {
  const all = await approvalsOf(ops)
  const newest = all
    .filter(({ operation }) => operation === name)
    .toSorted((a, b) => b.id - a.id)[0]
  if (newest === undefined) throw new Error(`no approval of ${name}`)
  return newest
}

/** Waits until an approval has one of these statuses. */
function reaches(ops: Pick<OpsServer, 'api'>, name: string, ...statuses: readonly string[]) {
  return until(
    async () => {
      const approval = await approvalOf(ops, name)
      return statuses.includes(approval.status) && approval
    },
    `${name} to be ${statuses.join(' or ')}`,
  )
}

function decide({ api }: Pick<OpsServer, 'api'>, id: number, decision = 'approve') {
  return api<Approval>('POST', `/approvals/${id}`, { decision })
}

const plant = await makePlant(t)
const model = await startModel(t)
const receiver = await startReceiver(t)
const ops = await startOps(t, postgres, {
  ...model.env,
  OPS_INVENTORY: plant.path,
  OPS_NOTIFY_URL: receiver.url,
  OPS_CHAT_API_KEY: KEY,
})
await ended(ops)
// Of the same process it would take the sessions of the first for its own.
const other = await startOpsProcess(t, postgres, ops.env)
const messages = () =>
  receiver.received.map(({ body }): string => JSON.parse(body.toString()).message)
const notified = (pattern: RegExp) =>
  until(() => messages().find((message) => pattern.test(message)), `a notice of ${pattern}`)
const page = async (path = '/approvals') => (await request(`${ops.base}${path}`)).text

await t.test('the call waits, the model is told so, and the same call joins it', async (t) => {
  const { told, session } = await ask(ops, model, 'restart', 'restart')
  t.match(session, { tier: 3, status: 'completed' })
  const { id, ...approval } = await approvalOf(ops, 'restart')
  const waits = new RegExp(`^restart of shop is not run yet: approval ${id} waits for a person`)
  t.match(told, [waits, waits])
  t.equal((await approvalsOf(ops)).length, 1)
  t.match(approval, {
    ...{ status: 'pending', service: 'shop', session_id: session.id, outcome: null },
    ...{
      reason: 'it hangs <b>restart</b>',
      argv: ['sh', '-c', /echo/, 'sh', /ran\.txt/, 'restart'],
    },
  })
  await notified(
    /^restart of shop waits for a person's approval until \S+Z\. It .* Reason: it hangs/,
  )
  t.match(await page('/waiting'), /1 operation waits for approval/)
  t.match(await page('/'), /1 operation waits for approval/)
  const shown = await page()
  t.match(shown, /ran\.txt restart<\/code>/, 'the whole command')
  t.match(shown, /it hangs &lt;b>restart&lt;\/b>|it hangs &lt;b&gt;restart/)
  t.match(shown, `<a href="/sessions/${session.id}">`)
  t.match(shown, /0 of 2 in 4h/)
  t.match(await page('/cooldowns'), /after approval/)
  t.same(plant.ran(), [])
})

await t.test('what is no decision of a person changes nothing', async (t) => {
  const { id } = await approvalOf(ops, 'restart')
  const call = `POST /api/v1/approvals/${id}`
  const approve = { decision: 'approve' }
  const form = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
  const cross = { 'sec-fetch-site': 'cross-site' }
  await refuseAll(t, { service: 'ops', base: ops.base, state: () => approvalsOf(ops) }, [
    [`GET /api/v1/approvals/${id}?decision=approve`, 404],
    [
      { call: `POST /api/v1/approvals/999999`, body: approve },
      404,
      undefined,
      'approval not found',
    ],
    [{ call: 'POST /api/v1/approvals/x', body: approve }, 400],
    [{ call, body: { decision: 'yes' } }, 400],
    [{ call, body: {} }, 400],
    [{ call, body: { ...approve, evnt_types: 1 } }, 400, undefined, /evnt_types is not known/],
    [{ call, body: approve, headers: cross }, 403],
    [
      { call: `POST /approvals/${id}`, body: 'decision=approve', headers: { ...form, ...cross } },
      403,
    ],
  ])
  t.equal((await request(`${ops.base}/approvals/${id}?decision=approve`)).status, 405)
  t.same(plant.ran(), [])
})

const node = promisify(execFile)
/** A program that decides by the API, and prints the status. */
const DECIDES = `fetch(process.argv[1], {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ decision: 'approve' }),
}).then((answer) => answer.text().then((text) => console.log(answer.status, text)))`

await t.test('no process of a session decides, and no program that is gone', async (t) => {
  const { id } = await approvalOf(ops, 'restart')
  const url = `${ops.base}/api/v1/approvals/${id}`
  const marked = { env: { [MARKER]: 'f00d' } }
  const refused = /^403 {"error":"A program that a session or an operation has started may not/
  const own = await node(process.execPath, ['-e', DECIDES, url], marked)
  t.match(own.stdout, refused)
  const cleared = `env -i "$0" -e "$1" "$2"; :`
  const child = await node('/bin/sh', ['-c', cleared, process.execPath, DECIDES, url], {
    env: { ...marked.env, PATH: process.env['PATH'] },
  })
  t.match(child.stdout, refused, 'a child that has cleared its environment')
  const operations = await node(process.execPath, ['-e', DECIDES, url], {
    env: { [MARKER]: 'f00d/1' },
  })
  t.match(operations.stdout, refused, 'a program that an operation has started')

  const { port } = new URL(ops.base)
  const body = JSON.stringify({ decision: 'approve' })
  const head = [
    `POST /api/v1/approvals/${id} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ].join('\r\n')
  const seen = () =>
    ops.server.logs().filter((line) => /approvals.*"status":403/.test(line)).length
  for (const end of ['destroy', 'resetAndDestroy'] as const) {
    const before = seen()
    const socket = connect(Number(port), '127.0.0.1')
    await new Promise((resolve) => socket.write(`${head}\r\n\r\n${body}`, resolve))
    socket[end]()
    if (end === 'destroy') await until(() => seen() > before, 'the refusal of one that is gone')
  }
  await refuseProcess(t, id)
  t.match(await approvalOf(ops, 'restart'), { status: 'pending' })
  t.same(plant.ran(), [])
})

/** The command refuses by its own environment. */
async function refuseProcess(t: Test, id: number) {
  const env = { ...ops.env, [MARKER]: 'f00d' }
  const { code, stderr } = await runCliProcess(['approve', String(id)], { env })
  t.equal(code, 1)
  t.match(stderr, /a program that a session or an operation has started may not/)
}

await t.test('two clicks on two instances: it runs once, and is verified', async (t) => {
  const { id } = await approvalOf(ops, 'restart')
  const answers = await Promise.all([ops, other, ops, other].map((one) => decide(one, id)))
  t.same(answers.map(({ status }) => status).toSorted(), [200, 409, 409, 409])
  t.match(answers.find(({ status }) => status === 200)?.json, { id, status: 'approved' })
  t.match(await reaches(ops, 'restart', 'done'), {
    ...{ decided_by: 'operator', outcome: /^ended with 0; check written is good/ },
  })
  t.same(plant.ran(), ['restart'])
  await notified(/^Approval \d+ \(restart of shop\) was approved by operator$/)
  const events = (await eventsOf(ops, '?limit=1000')).map(({ message }) => message)
  t.equal(events.filter((one) => one === 'Runs restart: approved by operator').length, 1)
  t.equal(events.filter((one) => /^restart: ended with 0; check/.test(one)).length, 1)
  const { json } = await ops.api<{ cooldowns: readonly object[] }>('GET', '/cooldowns')
  t.match(json.cooldowns, [{ service: 'shop', action_type: 'restart', count: 1 }])
  const audit = (await auditOf(ops.env)).map(({ actor, action, subject }) => [
    actor,
    action,
    subject,
  ])
  t.match(
    audit.filter(([, action]) => String(action).startsWith('approval')),
    [
      ['operator', 'approval approve', 'restart of shop'],
      [/^session \d+$/, 'approval ask', 'restart of shop'],
    ],
  )
  t.match(await page(), /by <bdi>operator<\/bdi>/)
  t.notMatch(await page('/waiting'), /for approval/)
})

await t.test('by the form: rejected, and then decided for good', async (t) => {
  await ask(ops, model, 'move')
  const { id } = await approvalOf(ops, 'move')
  const send = (decision: string) =>
    request(`${ops.base}/approvals/${id}`, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' },
        'sec-fetch-site': 'same-origin',
      },
      body: `decision=${decision}`,
    })
  const { status, headers } = await send('reject')
  t.match({ status, to: leadsTo({ headers }) }, { status: 303, to: '/approvals' })
  const again = await send('approve')
  t.equal(again.status, 409)
  t.match(again.text, `Approval ${id} was decided by operator, and is rejected.`)
  const answer = await decide(ops, id)
  t.match(answer, { status: 409 })
  t.match(answer.text, `approval ${id} was decided by operator, and is rejected`)
  await notified(/^Approval \d+ \(move of shop\) was rejected by operator$/)
  t.notMatch(plant.ran(), ['move'])
})

await t.test('expired: it can not be approved, and people hear of it once', async (t) => {
  await ask(ops, model, 'move')
  const { id } = await approvalOf(ops, 'move')
  // By the database's clock.
  const past = `update ops.approvals set expires_at = clock_timestamp() where id = $1`
  await postgres.query(ops.env, past, [id])
  const answer = await decide(ops, id)
  t.equal(answer.status, 409)
  t.match(answer.text, new RegExp(`approval ${id} is expired`))
  await reaches(ops, 'move', 'expired')
  t.equal((await decide(other, id)).status, 409)
  const ends = /^Approval \d+ \(move of shop\) is expired: nobody decided in time$/
  await notified(ends)
  const events = await eventsOf(ops, '?limit=1000')
  t.equal(events.filter(({ message }) => ends.test(message)).length, 1)
  const { told } = await ask(ops, model, 'move')
  t.match(told, [/approval \d+ waits for a person/], 'asked for again, it is another one')
  t.match(await approvalOf(ops, 'move'), { status: 'pending' })
  t.not((await approvalOf(ops, 'move')).id, id)
})

await t.test('approved, and no server ran it in time: expired, and told', async (t) => {
  const { id } = await approvalOf(ops, 'move')
  await postgres.query(
    ops.env,
    `update ops.approvals
        set status = 'approved', decided_at = now(), decided_by = 'ann', expires_at = clock_timestamp()
      where id = $1`,
    [id],
  )
  await reaches(ops, 'move', 'expired')
  await notified(
    new RegExp(`^Approval ${id} .* is expired: approved, and no server ran it in time`),
  )
  t.notMatch(plant.ran(), ['move'])
  await ask(ops, model, 'move')
})

await t.test('a secret in a command is shown nowhere, and the command runs with it', async (t) => {
  await ask(ops, model, 'secret')
  t.match(await approvalOf(ops, 'secret'), {
    argv: ['sh', '-c', /echo/, 'sh', /ran/, '«redacted»'],
  })
  await decide(ops, (await approvalOf(ops, 'secret')).id)
  await reaches(ops, 'secret', 'done')
  t.equal(plant.ran().at(-1), KEY)
})

/** Approves what waits, and expects that it does not run. */
async function isRefused(t: Test, name: string, outcome: RegExp) {
  const before = plant.ran()
  const { id } = await approvalOf(ops, name)
  t.equal((await decide(ops, id)).status, 200)
  t.match(await reaches(ops, name, 'refused'), { outcome })
  await notified(new RegExp(`^Approval ${id} \\(${name} of shop\\) was not run: `))
  t.same(plant.ran(), before)
  t.match(await page(), outcome)
}

await t.test('checked again before it runs: cooldown, dry run, pause, inventory', async (t) => {
  await ask(ops, model, 'flush', 'clean')
  const { told } = await ask(ops, model, 'free')
  t.match(told, [/^free: ended with 0/], 'one that needs no approval')
  await isRefused(t, 'flush', /cooldown: flush of shop was done 1 times within 3600 s, 1 at most/)
  const { told: later } = await ask(ops, model, 'flush')
  t.match(later, [/^Error: Cooldown: flush was not run/], 'nobody is asked for what may not run')

  await ops.api('PUT', '/config', { dry_run: true })
  await isRefused(t, 'clean', /dry run: nothing runs/)
  await ops.api('PUT', '/config', { dry_run: false })

  await ask(ops, model, 'clean')
  await ops.api('PUT', '/pause', { repairs: true })
  await isRefused(t, 'clean', /repairs are paused/i)
  const resumes = DECIDES.replace("'POST'", "'PUT'").replace(
    "decision: 'approve'",
    'repairs: false',
  )
  const marked = { env: { [MARKER]: 'f00d' } }
  const { stdout } = await node(
    process.execPath,
    ['-e', resumes, `${ops.base}/api/v1/pause`],
    marked,
  )
  t.match(stdout, /^403 /, 'no process of a session resumes them')
  await ops.api('PUT', '/pause', { repairs: false })

  await ask(ops, model, 'clean')
  const { id } = await approvalOf(ops, 'clean')
  plant.change('clean')
  const { told: changed } = await ask(ops, model, 'clean')
  const renewed = await approvalOf(ops, 'clean')
  t.match(changed, [new RegExp(`approval ${renewed.id} waits`)], 'another command is another one')
  const old = (await approvalsOf(ops)).find((one) => one.id === id)
  t.match(old, { status: 'refused', outcome: /another command/ })
  const decided = await decide(ops, id)
  t.match(decided, { status: 409 })
  plant.change('move')
  await isRefused(t, 'clean', /the inventory has another command for it now/)
  await isRefused(t, 'move', /the inventory has another command for it now/)
})

await t.test('one that fails is told', async (t) => {
  await ask(ops, model, 'broken')
  await decide(ops, (await approvalOf(ops, 'broken')).id)
  t.match(await reaches(ops, 'broken', 'failed'), { outcome: 'ended with 3' })
  await notified(/^Approval \d+ \(broken of shop\) failed: ended with 3$/)
  t.match(await page('/waiting'), /broken of shop\) failed: ended with 3/)
})

await t.test('what a silent server of another machine ran is interrupted', async (t) => {
  await postgres.query(
    ops.env,
    `insert into ops.approvals (service, operation, argv, reason, status, created_at, expires_at,
                                holder, machine, heartbeat_at)
     values ('shop', 'far', '[]', '', 'running', now(), now(), '1/1', 'elsewhere',
             clock_timestamp() - interval '31 seconds'),
            ('shop', 'near', '[]', '', 'running', now(), now(), '1/1', 'elsewhere', clock_timestamp() + interval '1 hour')`,
  )
  t.match(await reaches(ops, 'far', 'interrupted'), { outcome: /process that ran it is gone/ })
  t.match(await approvalOf(ops, 'near'), { status: 'running' }, 'one that is alive')
  await notified(/^Approval \d+ \(far of shop\) was interrupted, and does not run again by itself/)
})

await t.test('a server that stops interrupts what it runs', async (t) => {
  const long = `${700_000 + process.pid}`
  const stays = { name: 'long', action_type: 'long', approval: true, argv: ['sleep', long] }
  const services = [{ name: 'shop', checks: [], operations: [stays] }]
  const file = await inventoryFile(t, { services })
  const own = await startOps(t, postgres, { ...model.env, OPS_INVENTORY: file })
  await ended(own)
  await ask(own, model, 'long')
  await decide(own, (await approvalOf(own, 'long')).id)
  await until(() => processesWith(`sleep ${long}`).length > 0, 'the operation')
  await own.server.stop()
  t.same(processesWith(`sleep ${long}`), [])
  const rows = await postgres.query(own.env, 'select status, outcome from ops.approvals')
  t.same(rows, [{ status: 'interrupted', outcome: 'it was stopped' }])
  const critical = `select message from ops.events where level = 'critical'`
  t.match(await postgres.query(own.env, critical), [{ message: /does not run again by itself/ }])
})

await onPostgres(t, 'by the command line', async (t: Test, backend) => {
  const { path, ran } = await makePlant(t)
  const model = await startModel(t)
  const ops = await startOps(t, backend, { ...model.env, OPS_INVENTORY: path })
  await ended(ops)
  await ask(ops, model, 'restart', 'move')
  const { env } = ops
  const listed = async () => {
    const { stdout } = await runCli(['approvals', '--json'], { env })
    const rows: readonly Approval[] = JSON.parse(stdout)
    return rows.map(({ id, status, operation }) => `${id} ${status} ${operation}`)
  }
  t.same(await listed(), ['1 pending restart', '2 pending move'])
  const { stdout } = await runCli(['approvals'], { env })
  t.match(stdout, /^ID +STATE +OPERATION/)
  t.match(stdout, /^1 +pending +restart of shop +.*ran\.txt restart +it hangs/m)
  t.match(await runCli(['approve', '1'], { env }), {
    ...{ code: 0, stderr: /restart of shop is approved\n/ },
  })
  t.match(await runCli(['approve', '2', '--reject'], { env }), {
    ...{ code: 0, stderr: /move of shop is rejected\n/ },
  })
  await reaches(ops, 'restart', 'done')
  t.same(ran(), ['restart'])
  t.match(await approvalOf(ops, 'restart'), { decided_by: 'command' })
  await refuseCommands(t, { env, state: listed }, [
    [['approve', '2'], 1, 'approval 2 was decided by command, and is rejected'],
    [['approve', '77'], 1, 'approval not found'],
    [['approve', 'x'], 2, 'ID must be a whole number'],
    [['approve'], 2, /Missing ID/],
  ])
})
