import { t } from 'tap'
import type { Test } from 'tap'
import { processesWith } from '../helpers/agents.ts'
import { onPostgres } from '../helpers/backends.ts'
import type { Backend } from '../helpers/backends.ts'
import { calls, inTier, says, startModel } from '../helpers/model.ts'
import { calm } from '../helpers/notices.ts'
import { ended, inventoryFile, startOpsProcess, trigger } from '../helpers/ops.ts'
import type { OpsProcess, Session } from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

/** Nobody else sleeps that long: by it the processes of each operation are found. */
const long = (name: string) => `${600_000 + process.pid}.${name.length}`
const sleepers = (name: string) => processesWith(`sleep ${long(name)}`)

await onPostgres(
  t,
  'kill -9 of the server during an operation: nothing of it survives, and what others started does',
  async (t: Test, backend: Backend) => {
    t.teardown(() =>
      ['up', 'stuck', 'checked'].flatMap(sleepers).forEach((pid) => process.kill(pid, 'SIGKILL')),
    )
    let looks = 0
    const web = await startReceiver(t, (_, response) => {
      looks++
      response.writeHead(503).end()
    })
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
    // By itself it runs at the start alone.
    const checks = [{ type: 'http', name: 'web', url: web.url, timeout_s: 30, every: '24h' }]
    const model = await startModel(t)
    const ops = await startOpsProcess(t, backend, {
      ...model.env,
      OPS_INVENTORY: await inventoryFile(t, { services: [{ name: 'shop', checks, operations }] }),
    })
    await ended(ops)
    /** Has the agent run operations until something is so, and starts another server after a crash. */
    async function crash(
      { api, server }: OpsProcess,
      names: readonly string[],
      when: () => boolean,
    ) {
      const call = (operation: string) =>
        ['run_operation', { service: 'shop', operation, reason: 'it hangs' }] as const
      const list = names.map(call)
      model.answer(inTier(3, ({ step }) => (step === 0 ? calls(...list) : says('Done.'))))
      // The session that a start begins by itself may still run.
      await until(() => trigger({ api }), 'the session')
      await until(when, names.join(' and '), 30_000)
      await server.kill()
      const again = await startOpsProcess(t, backend, ops.env)
      const { json } = await again.api<{ sessions: readonly Session[] }>('GET', '/sessions')
      const { status } = json.sessions.find(({ tier }) => tier === 3) ?? {}
      t.equal(status, 'failed', `the session of ${names.join(' and ')}`)
      return again
    }

    const second = await crash(ops, ['up', 'stuck'], () => sleepers('stuck').length > 4)
    t.same(sleepers('stuck'), [], 'an operation that ran')
    t.equal(sleepers('up').length, 2, 'one that had ended well')

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
      { operation: 'up', outcome: 'ended with 0' },
      { operation: 'stuck', outcome: 'the process that ran it is gone' },
      { operation: 'checked', outcome: 'ended with 0' },
    ])
  },
)

await onPostgres(
  t,
  'kill -9 of the server during an approved operation: it does not run again, and a person hears of it',
  async (t: Test, backend: Backend) => {
    t.teardown(() => sleepers('approved').forEach((pid) => process.kill(pid, 'SIGKILL')))
    const receiver = await startReceiver(t)
    const sleep = `sleep ${long('approved')}`
    const operation = {
      name: 'long',
      action_type: 'long',
      approval: true,
      timeout_s: 600,
      argv: ['sh', '-c', `${sleep} & setsid ${sleep} & ${sleep}; :`],
    }
    const services = [{ name: 'shop', checks: [], operations: [operation] }]
    const model = await startModel(t)
    const ops = await startOpsProcess(t, backend, {
      ...model.env,
      OPS_NOTIFY_URL: receiver.url,
      OPS_INVENTORY: await inventoryFile(t, { services }),
    })
    await calm(ops.env)
    await ended(ops)
    const call = [
      'run_operation',
      { service: 'shop', operation: 'long', reason: 'it hangs' },
    ] as const
    model.answer(inTier(3, ({ step }) => (step === 0 ? calls(call) : says('It waits.'))))
    await trigger(ops)
    await ended(ops)
    await ops.api('POST', '/approvals/1', { decision: 'approve' })
    await until(() => sleepers('approved').length > 2, 'the operation', 30_000)
    await ops.server.kill()
    const again = await startOpsProcess(t, backend, ops.env)
    const [approval] = await until(async () => {
      const { json } = await again.api<{ approvals: readonly { status: string }[] }>(
        'GET',
        '/approvals',
      )
      return json.approvals.every(({ status }) => status !== 'running') && json.approvals
    }, 'the end of the approval')
    t.match(approval, { status: 'interrupted', outcome: 'the process that ran it is gone' })
    t.same(sleepers('approved'), [], 'nothing of it is left')
    const told = () => receiver.received.map(({ body }) => JSON.parse(body.toString()))
    const lost = /^Approval 1 .* was interrupted, and does not run again by itself/
    await until(() => told().some(({ message }) => lost.test(message)), 'the notice')
    await again.server.stop()
    const rows = await backend.query(ops.env, 'select operation, outcome from ops.actions')
    t.same(
      rows,
      [{ operation: 'long', outcome: 'the process that ran it is gone' }],
      'it ran once',
    )
  },
)
