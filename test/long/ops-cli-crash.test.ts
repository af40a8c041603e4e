import { t } from 'tap'
import { claudeResult, processesWith, startAgentOps } from '../helpers/agents.ts'
import type { AgentOps } from '../helpers/agents.ts'
import { backends } from '../helpers/backends.ts'
import { ended, eventsOfSession, opsServer, startOpsProcess, trigger } from '../helpers/ops.ts'
import type { Session } from '../helpers/ops.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'

const [embedded, postgres] = backends
/** Nobody else sleeps that long: by it the processes of a test are found. */
const long = `${200_000 + process.pid}.5`
const sleepers = (): readonly number[] => processesWith(`sleep ${long}`)
// When the product has failed to.
t.teardown(() => sleepers().forEach((pid) => process.kill(pid, 'SIGKILL')))

/** An agent that will not leave by itself, with children that signals to its group do not reach. */
const STUBBORN = `trap '' INT TERM HUP
setsid sleep ${long} &
(setsid sh -c 'trap "" INT TERM HUP; setsid sleep ${long} & while :; do sleep ${long}; done' &)
env -i /usr/bin/env PATH="$PATH" setsid sleep ${long} &
echo started
while :; do sleep ${long}; done
`

/** Starts a session that only ends when it is ended. */
async function stubborn(ops: AgentOps): Promise<Session> {
  ops.agent.does(STUBBORN)
  const session = await trigger(ops)
  // Five that sleep, and the shell that has its script in its command line.
  await until(() => sleepers().length === 6, 'six processes')
  return session
}

t.test('after kill -9 of the server nothing of a session survives', async (t) => {
  const ops = await startAgentOps(t, embedded)
  const { id } = await stubborn(ops)
  await ops.server.kill()
  t.equal(sleepers().length, 6, 'the crash itself ends no child')

  ops.agent.says([claudeResult()])
  const again = await startOpsProcess(t, embedded, ops.env)
  const failed = await ended(again, id)
  t.match(failed, { status: 'failed', exit_code: 1, ended_at: String })
  t.ok((failed.duration_ms ?? -1) >= 0, 'it has a duration')
  t.same(sleepers(), [], 'not even one that has cleared its environment')
  t.match(await eventsOfSession(again, id), [
    { level: 'critical', service: 'gatehouse', message: /the process that ran it is gone/ },
  ])
  // The session that a start begins by itself may still run.
  const next = await until(() => trigger(again), 'the next session')
  const { status } = await ended(again, next.id)
  t.equal(status, 'completed', 'the next session runs')
})

t.test('another server on the same database and machine ends what a dead one left', async (t) => {
  const ops = await startAgentOps(t, postgres)
  const other = await startServerProcess(t, { services: ['ops'], env: ops.env })
  const { id } = await stubborn(ops)
  await ops.server.kill()
  const failed = await ended(opsServer(other, ops.env), id)
  t.match(failed, { status: 'failed', exit_code: 1 })
  t.same(sleepers(), [])
})
