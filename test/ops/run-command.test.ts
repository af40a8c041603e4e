import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { runCommand } from '../../kernel/processes/run.ts'
import { processesWith } from '../helpers/agents.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'

/** Nobody else sleeps that long: by it the processes of a test are found. */
const long = (name: string): string => `sleep ${800_000 + process.pid}.${name.length}`
const sleepers = (name: string): readonly number[] => processesWith(long(name))
t.teardown(() =>
  ['far', 'middle'].flatMap(sleepers).forEach((pid) => process.kill(pid, 'SIGKILL')),
)

t.test('nothing is started for a signal that came before', async (t) => {
  const file = join(await temporaryFolder(t), 'written')
  const signal = AbortSignal.abort()
  t.same(await runCommand(['touch', file], { timeoutMs: 60_000, signal }), {
    ...{ code: null, output: '', isCut: true, missing: null },
    problem: 'it was stopped before it began',
  })
  t.notOk(existsSync(file))
})

t.test('one that is told to end twice leaves no more than one that is told once', async (t) => {
  const control = new AbortController()
  // The second one has cleared its environment and left the group: its parent, which goes at once, tells of it.
  const middle = `env -i PATH="$PATH" setsid ${long('far')} & ${long('middle')}`
  const running = runCommand(
    ['sh', '-c', `trap : TERM; sh -c '${middle}' & wait; wait; sleep 60`],
    {
      ...{ timeoutMs: 10_000, signal: control.signal },
      ...{ marker: randomUUID(), leaves: true, ownsMarker: true },
    },
  )
  // The command line of the command itself has these words, too, and that of the shell in the middle.
  await until(() => sleepers('middle').length === 3 && sleepers('far').length === 3, 'all of it')
  await until(() => sleepers('middle').length === 1, 'its time to be over')
  control.abort()
  t.match(await running, { code: null, problem: 'it took over 10 s' })
  t.same(sleepers('far'), [])
})
