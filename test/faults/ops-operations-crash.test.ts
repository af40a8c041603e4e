import { t } from 'tap'
import { processesWith } from '../helpers/agents.ts'
import { onPostgres, type Backend } from '../helpers/backends.ts'
import { calls, inTier, says, startModel } from '../helpers/model.ts'
import { calm } from '../helpers/notices.ts'
import {
  ended,
  inventoryFile,
  startOpsProcess,
  trigger,
  type OpsProcess,
  type Session,
} from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

/** Nobody else sleeps that long: by it the processes of each operation are found. */
const long = (name: string) => `${600_000 + process.pid}.${name.length}`
const sleepers = (name: string) => processesWith(`sleep ${long(name)}`)
const NAMES = ['up', 'stuck', 'checked', 'approved']

await onPostgres(
  t,
  'kill -9 of the server during operations: nothing of them survives, and what others started does',
  async (t, backend: Backend) => {
    t.teardown(() => NAMES.flatMap(sleepers).forEach((pid) => process.kill(pid, 'SIGKILL')))
    let looks = 0
    const web = await startReceiver(t, (_, response) => {
      looks++
      response.writeHead(503).end()
    })
    const receiver = await startReceiver(t)
    const does = (name: string, script: string) => ({
      name,
      action_type: name,
      timeout_s: 600,
      argv: ['sh', '-c', script.replaceAll('SLEEP', `sleep ${long(name)}`)],
    })
    const operations = [
      does('up', 'SLEEP & setsid SLEEP &'),
      does('stuck', 'SLEEP & setsid SLEEP & (setsid sh -c "SLEEP; :" &) ; SLEEP; :'),
      { ...does('checked', 'SLEEP & setsid SLEEP &'), verify: 'web' },
    ]
    const approved = { ...does('approved', 'SLEEP & setsid SLEEP & SLEEP; :'), approval: true }
    // By itself it runs at the start alone.
    const checks = [{ type: 'http', name: 'web', url: web.url, timeout_s: 30, every: '24h' }]
    const services = [
      { name: 'shop', checks, operations },
      { name: 'store', checks: [], operations: [approved] },
    ]
    const model = await startModel(t)
    const ops = await startOpsProcess(t, backend, {
      ...model.env,
      OPS_NOTIFY_URL: receiver.url,
      OPS_INVENTORY: await inventoryFile(t, { services }),
    })
    await calm(ops.env)
    await ended(ops)
    /** Has the agent run operations. */
    async function run({ api }: OpsProcess, service: string, names: readonly string[]) {
      const call = (operation: string) =>
        ['run_operation', { service, operation, reason: 'it hangs' }] as const
      const list = names.map(call)
      model.answer(inTier(3, ({ step }) => (step === 0 ? calls(...list) : says('Done.'))))
      // The session that a start begins by itself may still run.
      await until(() => trigger({ api }), 'the session')
    }
    /** Has it run them until something is so, and starts another server after a crash. */
    async function crash(at: OpsProcess, names: readonly string[], when: () => boolean) {
      await run(at, 'shop', names)
      await until(when, names.join(' and '), 30_000)
      await at.server.kill()
      const again = await startOpsProcess(t, backend, ops.env)
      const { json } = await again.api<{ sessions: readonly Session[] }>('GET', '/sessions')
      const { status } = json.sessions.find(({ tier }) => tier === 3) ?? {}
      t.equal(status, 'failed', `the session of ${names.join(' and ')}`)
      return again
    }

    await run(ops, 'store', ['approved'])
    await ended(ops)
    await ops.api('POST', '/approvals/1', { decision: 'approve' })
    await until(() => sleepers('approved').length > 2, 'the operation', 30_000)
    const second = await crash(ops, ['up', 'stuck'], () => sleepers('stuck').length > 4)
    t.same(sleepers('stuck'), [], 'an operation that ran')
    t.equal(sleepers('up').length, 2, 'one that had ended well')

    await t.test('an approved one does not run again, and a person hears of it', async (t) => {
      type List = { approvals: readonly { status: string }[] }
      const [approval] = await until(async () => {
        const { json } = await second.api<List>('GET', '/approvals')
        return json.approvals.every(({ status }) => status !== 'running') && json.approvals
      }, 'the end of the approval')
      t.match(approval, { status: 'interrupted', outcome: 'the process that ran it is gone' })
      t.same(sleepers('approved'), [], 'nothing of it is left')
      const lost = /Approval 1 .* was interrupted, and does not run again by itself/
      const isTold = () => receiver.received.some(({ body }) => lost.test(body.toString()))
      await until(isTold, 'the notice')
    })

    const before = looks
    const third = await crash(second, ['checked'], () => looks > before)
    t.equal(sleepers('checked').length, 2, 'one whose check was made')
    t.equal(sleepers('up').length, 2, 'and that of the session before')

    await third.server.stop()
    const rows = await backend.query(
      ops.env,
      'select operation, outcome from ops.actions order by id',
    )
    t.same(rows, [
      { operation: 'approved', outcome: 'the process that ran it is gone' },
      { operation: 'up', outcome: 'ended with 0' },
      { operation: 'stuck', outcome: 'the process that ran it is gone' },
      { operation: 'checked', outcome: 'ended with 0' },
    ])
  },
)
