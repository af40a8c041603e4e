import { t } from 'tap'
import type { Test } from 'tap'
import { calls, says } from '../helpers/model.ts'
import { openNight, type Night } from '../helpers/night.ts'

const HOUR_S = 3_600
const TARGETS = ['/a', '/b']

const night = await openNight(t, TARGETS, (url, writes) => {
  const check = {
    type: 'http',
    name: 'page',
    url,
    every: '5m',
    retries: 0,
    investigate: 3,
  } as const
  const cooldown = { count: 9, window_s: 60 }
  const operation = {
    name: 'restart',
    action_type: 'restart',
    argv: [...writes('restart')],
    cooldown,
  }
  return [{ name: 'shop', checks: [check], operations: [{ ...operation, approval: true }] }]
})
const repairs: Parameters<Night['model']['answer']>[0] = ({ step }) => {
  if (step > 0) return says('The shop is down; a restart waits for a person.')
  return calls(['run_operation', { service: 'shop', operation: 'restart', reason: 'it is down' }])
}

async function pendingApproval(): Promise<number> {
  const rows = await night.query(`select id::integer from ops.approvals where status = 'pending'`)
  t.equal(rows.length, 1, 'one approval waits')
  return Number(rows[0]?.['id'])
}

/** The shop fails for an hour, in which something happens, and is well for another one. */
async function outage(status: number | undefined, meanwhile: () => Promise<void>): Promise<void> {
  night.shop(status)
  await night.pass(HOUR_S / 2)
  await meanwhile()
  night.shop(200)
  await night.pass(HOUR_S)
}

t.test('twelve hours in which all fails at some time', async (t) => {
  night.model.answer(repairs)
  await night.pass(HOUR_S)

  // The network: the operation that the session asks for is approved.
  await outage(undefined, async () => {
    await night.decide(await pendingApproval(), 'approve')
    await night.pass(300)
    t.same(night.ran(), ['restart'], 'it ran once, after the yes')
  })
  // A target of notices is away for all of it, and nobody decides.
  night.target('/a', 503)
  await outage(503, async () => {
    await night.query(
      `update ops.approvals set expires_at = now() where id = ${await pendingApproval()}`,
    )
    await night.pass(600)
  })
  night.target('/a', 200)
  // The database.
  night.shop(503)
  night.reach(false)
  await night.pass(HOUR_S / 2)
  night.reach(true)
  await outage(503, async () => void (await night.decide(await pendingApproval(), 'reject')))
  // The model: first it is gone, then it hangs.
  night.model.answer([{ status: 404, body: '{"error":{"message":"no such model"}}' }])
  await outage(503, async () => undefined)
  const answer = night.model.hold()
  night.shop(503)
  await night.passWhileRunning(1_500)
  answer(says('Too late.'))
  night.shop(200)
  night.model.answer(repairs)
  await night.pass(2 * HOUR_S)

  t.same(night.ran(), ['restart'], 'nothing was repaired without the yes that it needs')
  t.match(await night.query('select status from ops.approvals order by id'), [
    { status: 'done' },
    { status: 'expired' },
    { status: 'rejected' },
  ])
  await told(t)
})

/** Each failure, and each session that failed, was told to each target; nothing was told twice. */
async function told(t: Test): Promise<void> {
  const failures = await night.query(`select p.id from ops.check_periods p where p.state = 'fail'`)
  const bad = await night.query(
    `select id::integer, status from ops.sessions where status in ('failed', 'timed_out') order by id`,
  )
  t.equal(failures.length, 5, 'five outages')
  t.ok(
    bad.some(({ status }) => status === 'failed') &&
      bad.some(({ status }) => status === 'timed_out'),
  )
  for (const target of TARGETS) {
    const taken = night.taken(target)
    const keys = taken.map(({ key }) => key)
    t.equal(new Set(keys).size, keys.length, `${target} is told nothing twice`)
    const ends = taken.filter(({ message }) => /^page is good again/.test(message))
    t.equal(ends.length, failures.length, `${target} hears that each is over`)
    for (const { id } of bad) {
      const about = taken.filter(({ message }) => message.startsWith(`Session ${String(id)} `))
      t.equal(about.length, 1, `${target} hears of session ${String(id)}`)
    }
  }
  const others = night
    .taken('/b')
    .filter(({ message }) => /^(?:Checks do not run|Scheduled sessions)/.test(message))
  t.same(others, [], 'nothing else is told')
  const begins = night.taken('/b').filter(({ message }) => /^page: /.test(message))
  t.equal(begins.length, failures.length, 'the target that was never away hears of each beginning')
}
