import { t } from 'tap'
import { startAlarms } from '../../../services/ops/watch/alarms.ts'
import { openNotified } from '../../helpers/notices.ts'

const MIB = 1024 * 1024
const LATE = `update ops.checks set next_at = now() - interval '1 hour'`

const front = (next: string) =>
  `insert into ops.checks (service, name, type, every_s, version, next_at, since)
   values ('shop', 'front', 'http', 60, '', ${next}, now())`

/** What is wrong with Gatehouse itself, and how people hear of it. */
const TROUBLES: readonly (readonly [
  name: string,
  trouble: { free?: number; problem?: string; sql?: string },
  told: readonly object[],
])[] = [
  [
    'hardly any space',
    { free: 60 * MIB },
    [
      { level: 'warning', message: 'The disk of the database has 60 MiB free: make room' },
      {
        level: 'critical',
        message: 'The disk of the database is nearly full (60 MiB free): soon nothing is stored',
      },
    ],
  ],
  [
    'no round of checks',
    { problem: 'no check has run for 70 s', sql: LATE },
    [{ level: 'critical', message: 'Checks do not run: no check has run for 70 s' }],
  ],
  ['checks that another instance runs', { problem: 'no check has run for 70 s' }, []],
  ['checks that are due and run', { sql: LATE }, []],
]

for (const [name, { free, problem, sql }, told] of TROUBLES) {
  await t.test(`${name}: told once by two instances, and once that it is over`, async (t) => {
    const one = await openNotified(t, ['/told'])
    await one.query(front(`now() + interval '1 day'`))
    let [space, stopped]: [number | undefined, string | undefined] = [undefined, undefined]
    const start = () =>
      startAlarms(
        { db: one.db, clock: one.clock, log: one.log, freeSpace: () => space },
        { problem: () => stopped },
      )
    let alarms = [start(), start()]
    const round = async () => {
      await Promise.all(alarms.map((alarm) => alarm.now()))
      await one.pass(60)
    }
    await round()
    ;[space, stopped] = [free, problem]
    if (sql !== undefined) await one.query(sql)
    await round()
    await round()
    t.match(one.taken('/told'), told)
    t.equal(one.taken('/told').length, told.length)

    // A process that has just begun does not know yet how its checks run.
    for (const alarm of alarms) await alarm.stop()
    alarms = [start(), start()]
    stopped = undefined
    await round()
    stopped = problem
    await round()
    t.equal(one.taken('/told').length, told.length, 'a restart tells and ends nothing')

    ;[space, stopped] = [2_000 * MIB, undefined]
    await round()
    await round()
    const messages = one.messages('/told')
    const ends = messages.slice(0, told.length).map((message) => `Over: ${message}`)
    t.same(messages.slice(told.length).toSorted(), ends.toSorted())
    t.notMatch(one.logged(), /"level":"(warn|error)"/)
    for (const alarm of alarms) await alarm.stop()
  })
}

t.test('checks that go on right after an outage of the database are no trouble', async (t) => {
  const one = await openNotified(t, ['/told'])
  await one.query(front(`now() - interval '1 hour'`))
  let problem: string | undefined
  const alarms = startAlarms(
    { db: one.db, clock: one.clock, log: one.log, freeSpace: () => undefined },
    { problem: () => problem },
  )
  await one.pass(60)
  for (const next of [undefined, 'no check has run for 1860 s', undefined]) {
    problem = next
    await alarms.now()
    await one.pass(60)
  }
  t.same(one.taken('/told'), [])
  await alarms.stop()
})
