import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { t, type Test } from 'tap'
import { processesWith } from '../../helpers/agents.ts'
import { auditOf } from '../../helpers/audit.ts'
import { postgres } from '../../helpers/backends.ts'
import { refuseCommands, runCli, runOk } from '../../helpers/cli.ts'
import { formCall, postForm } from '../../helpers/hooks.ts'
import { countAnswers, leadsTo, request } from '../../helpers/http.ts'
import { startModelOps, type Call } from '../../helpers/model.ts'
import { eventsOf, inventoryFile, listOf, sessionsOf, startOpsProcess } from '../../helpers/ops.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { refuseAll } from '../../helpers/refusals.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { secret } from '../../helpers/secrets.ts'
import { useTools } from '../../helpers/tools.ts'
import { until } from '../../helpers/until.ts'
import { calm } from '../../helpers/notices.ts'

// Operations that wait for a person (decisions.md section 7): nothing runs without the yes, and all runs once.

const KEY = secret('chat-key')
const MARKER = 'STARTED_BY_GATEHOUSE'

type Approval = { id: number; status: string; operation: string }

const folder = await temporaryFolder(t, 'approvals')
const file = join(folder, 'ran.txt')
/** An operation that writes a line to a file: what has run can be read there. */
const writes = (name: string, more: object = {}, line = name) => {
  const argv = ['sh', '-c', `echo "$2" >> "$1"`, 'sh', file, line]
  return { name, action_type: name, argv, approval: true, ...more }
}
/** Nobody else sleeps that long: by it the process is found. */
const LONG = `${700_000 + process.pid}`
const checks = [{ type: 'file_age', name: 'written', path: file, max_age_s: 600 }]
const inventory = (...changed: readonly string[]) => {
  const ofName = (name: string) => writes(name, {}, changed.includes(name) ? 'other' : name)
  const operations = [
    ...['move', 'clean', 'pack'].map(ofName),
    writes('restart', { verify: 'written' }),
    writes('flush', { cooldown: { count: 1, window_s: 3_600 } }),
    writes('secret', {}, KEY),
    writes('broken', { argv: ['sh', '-c', 'exit 3'] }),
    writes('long', { argv: ['sleep', LONG] }),
    {
      ...writes('free'),
      approval: false,
      action_type: 'flush',
      cooldown: { count: 9, window_s: 3_600 },
    },
  ]
  return { services: [{ name: 'shop', checks, operations }] }
}
const path = await inventoryFile(t, inventory())
const ran = () => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [])

function operation(name: string): Call {
  return ['run_operation', { service: 'shop', operation: name, reason: `it hangs <b>${name}</b>` }]
}

/** Has a session of tier 3 call operations, and gives what it was told. */
const ask = (...names: readonly string[]) => useTools(t, { model, ops }, names.map(operation), 3)

const approvals = () => listOf<Approval>(ops, 'approvals')

async function approvalOf(name: string): Promise<Approval> {
  const own = (await approvals()).filter(({ operation }) => operation === name)
  const [newest] = own.toSorted((a, b) => b.id - a.id)
  if (newest === undefined) throw new Error(`no approval of ${name}`)
  return newest
}

/** Waits until an approval has this status. */
const reaches = (name: string, wanted: string) =>
  until(
    async () => {
      const approval = await approvalOf(name)
      return approval.status === wanted && approval
    },
    `${name} to be ${wanted}`,
    30_000,
    250,
  )

const approveOperation = async (name: string) => decide((await approvalOf(name)).id)

const decide = (id: number, { api } = ops) =>
  api<Approval>('POST', `/approvals/${id}`, { decision: 'approve' })

const receiver = await startReceiver(t)
const { ops, model } = await startModelOps(t, {
  OPS_INVENTORY: path,
  OPS_NOTIFY_URL: receiver.url,
  OPS_CHAT_API_KEY: KEY,
})
await calm(ops.env)
// Of the same process it would take the sessions of the first for its own.
const other = await startOpsProcess(t, postgres, ops.env)
const messages = () => receiver.received.map(({ body }) => JSON.parse(body.toString()).message)
const notified = (pattern: RegExp) =>
  until(() => messages().find((message) => pattern.test(message)), `a notice of ${pattern}`)
const page = (path = '/approvals') => ops.page(path)
const eventsLike = async (pattern: RegExp) =>
  (await eventsOf(ops, '?limit=1000')).filter(({ message }) => pattern.test(message))

await t.test('the call waits, the model is told so, and the same call joins it', async (t) => {
  const told = await ask('restart', 'restart')
  const [session] = await sessionsOf(ops)
  const { id, ...approval } = await approvalOf('restart')
  const waits = `restart of shop is not run yet: approval ${id} waits for a person`
  t.match(told, [waits, waits])
  t.equal((await approvals()).length, 1)
  t.match(approval, {
    status: 'pending',
    service: 'shop',
    session_id: session?.id,
    outcome: null,
    reason: 'it hangs <b>restart</b>',
    argv: ['sh', '-c', 'echo', 'sh', 'ran.txt', 'restart'],
  })
  await notified(
    /^restart of shop waits for a person's approval until \S+Z\. It .* Reason: it hangs/,
  )
  t.match(await page('/'), '1 operation waits for approval')
  const shown = await page()
  t.match(shown, 'ran.txt restart</code>', 'the whole command')
  t.match(shown, /it hangs &lt;b>restart&lt;\/b>|it hangs &lt;b&gt;restart/)
  t.match(shown, `<a href="/sessions/${session?.id}">`)
  t.match(shown, '0 of 2 in 4h')
  t.match(await page('/cooldowns'), 'after approval')
  t.same(ran(), [])
})

await t.test('what is no decision of a person changes nothing', async (t) => {
  const { id } = await approvalOf('restart')
  const call = `POST /api/v1/approvals/${id}`
  const approve = { decision: 'approve' }
  const form = formCall(`/approvals/${id}`, approve, { accept: 'application/json' })
  const cross = { 'sec-fetch-site': 'cross-site' }
  await refuseAll(t, { service: 'ops', base: ops.base, state: () => approvals() }, [
    [`GET /api/v1/approvals/${id}?decision=approve`, 404],
    [{ call: `POST /api/v1/approvals/999999`, body: approve }, 404],
    [{ call: 'POST /api/v1/approvals/x', body: approve }, 400],
    [{ call, body: { decision: 'yes' } }, 400],
    [{ call, body: {} }, 400],
    [{ call, body: approve, headers: cross }, 403],
    [{ ...form, headers: { ...form.headers, ...cross } }, 403],
  ])
  t.equal((await request(`${ops.base}/approvals/${id}?decision=approve`)).status, 405)
  t.same(ran(), [])
})

const run = promisify(execFile)
/** Has curl send a change, and print the answer with its status. */
function change(method: string, path: string, body: object) {
  const sent = ['-H', 'content-type: application/json', '-d', JSON.stringify(body)]
  return ['-s', '-w', ' %{http_code}', '-X', method, ...sent, ops.base + path]
}

const marked = (marker: string) => ({ env: { PATH: process.env['PATH'], [MARKER]: marker } })

await t.test('no process of a session decides, and no program that is gone', async (t) => {
  const { id } = await approvalOf('restart')
  const path = `/api/v1/approvals/${id}`
  const approves = change('POST', path, { decision: 'approve' })
  const refused = /^{"error":"A program that a session or an operation has started may not.* 403$/
  const own = await run('curl', approves, marked('f00d/1'))
  t.match(own.stdout, refused, 'a program that an operation has started')
  const cleared = 'env -i PATH="$PATH" curl "$@"; :'
  const child = await run('sh', ['-c', cleared, 'sh', ...approves], marked('f00d'))
  t.match(child.stdout, refused, 'a child of a session that has cleared its environment')
  process.env[MARKER] = 'f00d'
  const { code, stderr } = await runCli(['approve', `${id}`], { env: ops.env })
  delete process.env[MARKER]
  t.equal(code, 1)
  t.match(stderr, 'a program that a session or an operation has started may not')

  const { port } = new URL(ops.base)
  const body = '{"decision":"approve"}'
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json`
  const refusals = () => countAnswers(ops.base, '/api/v1/approvals/:id', 403)
  const before = await refusals()
  const socket = connect(Number(port), '127.0.0.1')
  const sent = `${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  await new Promise((resolve) => socket.write(sent, resolve))
  socket.destroy()
  const isCounted = async () => (await refusals()) > before
  await until(isCounted, 'the refusal of one that is gone', 30_000, 250)
  t.match(await approvalOf('restart'), { status: 'pending' })
  t.same(ran(), [])
})

await t.test('two clicks on two instances: it runs once, and is verified', async (t) => {
  const { id } = await approvalOf('restart')
  const answers = await Promise.all([ops, other, ops, other].map((one) => decide(id, one)))
  t.same(answers.map(({ status }) => status).toSorted(), [200, 409, 409, 409])
  t.match(answers.find(({ status }) => status === 200)?.json, { id, status: 'approved' })
  t.match(await reaches('restart', 'done'), {
    decided_by: 'operator',
    outcome: 'ended with 0; check written is good',
  })
  t.same(ran(), ['restart'])
  await notified(/^Approval \d+ \(restart of shop\) was approved by operator$/)
  t.equal((await eventsLike(/^Runs restart: approved by operator$/)).length, 1)
  const audit = (await auditOf(ops.env)).filter(({ action }) => action.startsWith('approval'))
  t.match(audit, [
    { actor: 'operator', action: 'approval approve', subject: 'restart of shop' },
    { actor: /^session \d+$/, action: 'approval ask', subject: 'restart of shop' },
  ])
  t.match(await page(), 'by <bdi>operator</bdi>')
  t.notMatch(await page('/waiting'), 'for approval')
})

await t.test('by the form: rejected, and then decided for good', async (t) => {
  await ask('move')
  const { id } = await approvalOf('move')
  const sameOrigin = { accept: 'text/html', 'sec-fetch-site': 'same-origin' }
  const send = (decision: string) =>
    postForm(ops.base, `/approvals/${id}`, { decision }, sameOrigin)
  const { status, headers } = await send('reject')
  t.match({ status, to: leadsTo({ headers }) }, { status: 303, to: '/approvals' })
  const text = `Approval ${id} was decided by operator, and is rejected.`
  t.match(await send('approve'), { status: 409, text })
  await notified(/^Approval \d+ \(move of shop\) was rejected by operator$/)
  t.notMatch(ran(), ['move'])
})

await t.test('expired: it can not be approved, and people hear of it once', async (t) => {
  await ask('move')
  const { id } = await approvalOf('move')
  // By the database's clock.
  const past = `update ops.approvals set expires_at = clock_timestamp() where id = $1`
  await ops.query(past, [id])
  t.match(await decide(id), { status: 409, text: `approval ${id} is expired` })
  await reaches('move', 'expired')
  const ends = /^Approval \d+ \(move of shop\) is expired: nobody decided in time$/
  await notified(ends)
  t.equal((await eventsLike(ends)).length, 1)
})

await t.test('a secret in a command is shown nowhere, and the command runs with it', async (t) => {
  await ask('secret', 'broken')
  const argv = ['sh', '-c', 'echo', 'sh', 'ran', '«redacted»']
  t.match(await approvalOf('secret'), { argv })
  await approveOperation('secret')
  await reaches('secret', 'done')
  t.equal(ran().at(-1), KEY)
})

/** Approves what waits, and expects that it does not run. */
async function isRefused(t: Test, name: string, outcome: string | RegExp) {
  const before = ran()
  const { id } = await approvalOf(name)
  t.equal((await decide(id)).status, 200)
  t.match(await reaches(name, 'refused'), { outcome })
  await notified(new RegExp(`^Approval ${id} \\(${name} of shop\\) was not run: `))
  t.same(ran(), before)
  t.match(await page(), outcome)
}

await t.test('checked again before it runs: cooldown, dry run, pause, inventory', async (t) => {
  const [, , told] = await ask('flush', 'clean', 'free')
  t.match(told, 'free: ended with 0', 'one that needs no approval')
  await isRefused(t, 'flush', 'cooldown: flush of shop was done 1 times within 3600 s, 1 at most')
  const later = await ask('flush')
  t.match(later, ['Error: Cooldown: flush was not run'], 'nobody is asked for what may not run')

  await ops.api('PUT', '/config', { dry_run: true })
  await isRefused(t, 'clean', 'dry run: nothing runs')
  await ops.api('PUT', '/config', { dry_run: false })

  await ask('clean')
  await ops.api('PUT', '/pause', { repairs: true })
  await isRefused(t, 'clean', /repairs are paused/i)
  const resumes = change('PUT', '/api/v1/pause', { repairs: false })
  const { stdout } = await run('curl', resumes, marked('f00d'))
  t.match(stdout, / 403$/, 'no process of a session resumes them')
  await ops.api('PUT', '/pause', { repairs: false })

  await ask('clean')
  const { id } = await approvalOf('clean')
  writeFileSync(path, JSON.stringify(inventory('clean')))
  const changed = await ask('clean')
  const renewed = await approvalOf('clean')
  t.match(changed, [`approval ${renewed.id} waits`], 'another command is another one')
  const old = (await approvals()).find((one) => one.id === id)
  t.match(old, { status: 'refused', outcome: 'another command' })
  t.equal((await decide(id)).status, 409)
  writeFileSync(path, JSON.stringify(inventory()))
  await isRefused(t, 'clean', 'the inventory has another command for it now')
})

await t.test('one that fails is told', async (t) => {
  await approveOperation('broken')
  t.match(await reaches('broken', 'failed'), { outcome: 'ended with 3' })
  await notified(/^Approval \d+ \(broken of shop\) failed: ended with 3$/)
  t.match(await page('/waiting'), 'broken of shop) failed: ended with 3')
})

await t.test('what a silent server of another machine ran is interrupted', async (t) => {
  await ops.query(
    `insert into ops.approvals (service, operation, argv, reason, status, created_at, expires_at,
                                holder, machine, heartbeat_at)
     values ('shop', 'far', '[]', '', 'running', now(), now(), '1/1', 'elsewhere',
             clock_timestamp() - interval '31 seconds'),
            ('shop', 'near', '[]', '', 'running', now(), now(), '1/1', 'elsewhere', clock_timestamp() + interval '1 hour')`,
  )
  t.match(await reaches('far', 'interrupted'), { outcome: 'process that ran it is gone' })
  t.match(await approvalOf('near'), { status: 'running' }, 'one that is alive')
  await notified(/^Approval \d+ \(far of shop\) was interrupted, and does not run again by itself/)
})

await t.test('by the command line', async (t) => {
  await ask('pack')
  const { env } = ops
  const { id } = await approvalOf('pack')
  const listed = async () => {
    const rows: readonly Approval[] = JSON.parse((await runOk('approvals --json', { env })).stdout)
    return rows.map(({ id, status, operation }) => `${id} ${status} ${operation}`)
  }
  const { stdout } = await runOk('approvals', { env })
  t.match(stdout, /^ID +STATE +OPERATION/)
  t.match(stdout, /^\d+ +pending +pack of shop +.*ran\.txt pack +it hangs/m)
  const { stderr } = await runOk(`approve ${id}`, { env })
  t.equal(stderr, 'pack of shop is approved\n')
  t.match(await reaches('pack', 'done'), { decided_by: 'command' })
  await ask('pack')
  const { id: second } = await approvalOf('pack')
  const rejected = await runOk(`approve ${second} --reject`, { env })
  t.equal(rejected.stderr, 'pack of shop is rejected\n')
  await refuseCommands(t, { env, state: listed }, [
    [`approve ${second}`, 1, /was decided by command, and is rejected/],
    ['approve 777', 1, 'approval not found'],
    ['approve x', 2, 'ID must be a whole number'],
    ['approve', 2, /Missing ID/],
  ])
})

// The last one: its server stops.
await t.test('a server that stops interrupts what it runs', async (t) => {
  await other.server.stop()
  await ask('long')
  await approveOperation('long')
  await until(() => processesWith(`sleep ${LONG}`).length > 0, 'the operation', 30_000, 250)
  await ops.server.stop()
  t.same(processesWith(`sleep ${LONG}`), [])
  const [end] = await ops.query(
    `select a.status, a.outcome, e.message from ops.approvals a, ops.events e
      where a.operation = 'long' and e.level = 'critical' and e.message ~ 'long of shop'`,
  )
  t.match(end, { status: 'interrupted', outcome: 'it was stopped', message: 'does not run again' })
})
