import { t } from 'tap'
import { Unavailable } from '../../kernel/fault.ts'
import { failedOutcome, type Outcome } from '../../services/ops/runners/runner.ts'
import { startScheduler } from '../../services/ops/scheduler.ts'
import { openTimedSessions } from '../helpers/sessions-setup.ts'
import type { RunnerParts } from '../helpers/sessions-setup.ts'
import { until } from '../helpers/until.ts'

const good: Outcome = { ...failedOutcome(''), status: 'completed', problem: null, summary: 'Good.' }
let parts: RunnerParts
const { sessions, config, logged, ended } = await openTimedSessions(t, 'schedule', (made) => {
  parts = made
  return { name: 'probe', modelOf: () => 'none', run: async () => good }
})

t.test('a turn whose claim’s answer is lost is not lost', async (t) => {
  let lost = 0
  let begun: number | undefined
  const { log, clock } = parts
  const stop = startScheduler({
    ...{ log, clock, config },
    db: {
      ...parts.db,
      async run(query, args) {
        const rows = await parts.db.run(query, args)
        if (query.name === 'claimSchedule' && lost++ === 0) throw new Unavailable('no answer')
        return rows
      },
    },
    sessions: {
      ...sessions,
      async start(request) {
        const session = await sessions.start(request)
        begun ??= session?.id
        return session
      },
    },
  })
  await until(() => logged().includes('scheduled session not started'), 'the lost answer')
  const id = await until(() => begun, 'its session')
  t.match(await ended(id), { trigger: 'scheduled', status: 'completed' })
  t.equal(lost, 1, 'its claim is found')
  await stop()
})
