import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { t } from 'tap'
import { createCliRunner } from '../../services/ops/runners/cli.ts'
import { claudeResult, makeAgent } from '../helpers/agent-setup.ts'
import { openTimedSessions } from '../helpers/sessions-setup.ts'
import { until } from '../helpers/until.ts'

const agent = await makeAgent(t)
const { sessions, logged, start, ended, linesOf } = await openTimedSessions(t, 'full', (parts) =>
  createCliRunner({ ...parts, command: () => agent.command.split(' ') }),
)

/** Has every look at the processes fail, as it does where all descriptors are in use. */
function blind(): void {
  const { readdirSync } = fs
  const list = ((...args: Parameters<typeof readdirSync>) => {
    if (args[0] !== '/proc') return readdirSync(...args)
    throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
  }) as typeof readdirSync
  fs.readdirSync = list
  syncBuiltinESMExports()
  t.teardown(() => {
    fs.readdirSync = readdirSync
    syncBuiltinESMExports()
  })
}

t.test('without descriptors a session ends as what it is', async (t) => {
  agent.does('echo here; exec sleep 60\n')
  const first = await start()
  await until(async () => (await linesOf(first)).length > 0, 'its output')
  blind()
  await sessions.stop(first)
  t.match(await ended(first), { status: 'stopped' })
  agent.says([claudeResult()])
  t.match(await ended(await start()), { status: 'completed', summary: 'All well.', cost_usd: 0.25 })
  t.match(logged(), 'session not swept')
})
