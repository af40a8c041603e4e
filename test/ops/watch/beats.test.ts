import { createHash } from 'node:crypto'
import { t } from 'tap'
import { runCheck } from '../../../services/ops/watch/checks/run.ts'
import { createRedact } from '../../../services/ops/redact.ts'
import { postgres } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import { eventsOf, inventoryFile, startOps } from '../../helpers/ops.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { secret } from '../../helpers/secrets.ts'
import { until } from '../../helpers/until.ts'

const tokens = {
  backup: `${secret('beat')}-backup-0123456789`,
  report: `${secret('beat')}-report-0123456789`,
}
const env = await postgres.env(t)
const OPS_INVENTORY = await inventoryFile(t, {
  services: [
    {
      name: 'jobs',
      checks: [
        { type: 'heartbeat', name: 'backup', period: '24h', grace: '1h', token: tokens.backup },
        {
          type: 'heartbeat',
          name: 'report',
          period: '24h',
          token_sha256: createHash('sha256').update(tokens.report).digest('hex'),
        },
      ],
    },
  ],
})
const ops = await startOps(t, postgres, { ...env, OPS_INVENTORY })
const call = (path: string, init = {}) => request(`${ops.base}${path}`, init)
const { query } = ops

/** Waits until a check says this, with `N` for seconds, and has it look again and again. */
async function says(name: string, message: string) {
  await until(async () => {
    const due = `update ops.checks set next_at = now() where name = '${name}' returning message`
    const [row] = await query(due)
    return String(row?.['message']).replaceAll(/\b\d+ s\b/g, 'N s') === message
  }, `${name} to say ${message}`)
}

/** Calls the address of a job with a word behind it, and waits until its check says this. */
async function beat(job: keyof typeof tokens, word: string, message: string, sent = {}) {
  const answer = await call(`/beat/${tokens[job]}${word}`, sent)
  if (answer.status !== 200) throw new Error(`${word} was answered with ${answer.status}`)
  await says(job, message)
}

const SILENT = 'no call for 1 d 1 h, expected one every 24h'
const UNENDED = 'began N s ago; the run before it failed, or did not end'

/**
 * Moves all that a job said back by so many hours, and has its check look at it. It must have been due since the server
 * has begun: what fell due before is forgiven.
 */
async function age(name: string, hours: number) {
  await query(
    `update ops.checks
        set beat_at = beat_at - interval '${hours} hours', begun_at = begun_at - interval '${hours} hours',
            first_beat_at = first_beat_at - interval '${hours} hours', next_at = now()
      where name = '${name}'`,
  )
}

await t.test('a job that has never called is unknown', async () => {
  await says('backup', 'not looked at: its job has not called yet; let it call its address')
})

await t.test('each method and each word of a job', async (t) => {
  for (const method of ['GET', 'POST', 'HEAD']) {
    const answer = await call(`/beat/${tokens.backup}`, { method })
    t.match(answer, { status: 200, text: method === 'HEAD' ? '' : 'ok\n' })
  }
  await says('backup', 'called N s ago')
  await beat('backup', '/fail', 'its job failed N s ago')
  await beat('backup', '/start', UNENDED)
  await beat('backup', '', 'called N s ago, took N s', { method: 'POST' })
  await beat('report', '', 'called N s ago')
  const messages = (await eventsOf(ops)).map(({ message }) => message).toReversed()
  const told = (name: string) => messages.filter((message) => message.startsWith(name))
  t.match(told('backup'), [
    'backup is unknown: ',
    'backup is known again: called',
    'backup: its job failed',
    'backup is good again: called',
  ])
  t.match(told('report'), ['report is unknown: ', 'report is known again: called'])
})

await t.test('silence, and an end that does not come, are failures', async () => {
  await age('backup', 24)
  await says('backup', 'called 1 d 0 h ago, took N s')
  await age('backup', 1)
  await says('backup', SILENT)
  await beat('backup', '', 'called N s ago')
  await beat('backup', '/start', 'began N s ago')
  await age('backup', 1)
  await says('backup', 'began 1 h 0 min ago and has not ended, expected 1 h 0 min')
})

await t.test('a failure lasts until the job succeeds', async () => {
  // A job that is started again and again, and never ends.
  await beat('backup', '/start', UNENDED)
  // The clock was set back while it ran: it has ended all the same.
  await query(`update ops.checks set begun_at = now() + interval '1 hour' where name = 'backup'`)
  await beat('backup', '/0', 'called N s ago, took N s')
  // It crashes soon after each start, and says nothing of it.
  await age('backup', 24)
  await beat('backup', '/start', 'began N s ago')
  await query(
    `update ops.checks set beat_at = beat_at - interval '1 hour', begun_at = now(), next_at = now()
      where name = 'backup'`,
  )
  await says('backup', SILENT)
})

await t.test('exit codes, and the last lines of what a job says', async (t) => {
  const lines = `${'x'.repeat(99)}\n`.repeat(300)
  const sent = { method: 'POST', body: `${lines}no room on /backup\u0000\n` }
  await beat('report', '/3', 'its job failed N s ago: no room on /backup', sent)
  const [row] = await query(`select id, beat_text from ops.checks where name = 'report'`)
  const kept = String(row?.['beat_text'])
  t.ok(kept.length <= 10 * 1024)
  t.match(kept.slice(-30), /no room on \/backup\n$/)
  t.match(kept, /^x{99}\n/, 'whole lines')
  const { text } = await call(`/checks/${row?.['id']}`)
  t.match(text, /What its job said last[\s\S]*no room on \/backup/)
  await beat('report', '/start/', UNENDED)
  const large = { method: 'POST', body: 'x'.repeat(1024 * 1024 + 1) }
  await beat(
    'report',
    '/1',
    'its job failed N s ago: what it sent along has more than 1 MiB',
    large,
  )
  await beat('report', '', 'called N s ago')
})

await t.test('a job that calls all the time is looked at all the same', async () => {
  const since = new Date()
  await until(async () => {
    await call(`/beat/${tokens.report}`)
    const [row] = await query(`select checked_at from ops.checks where name = 'report'`)
    return (row?.['checked_at'] as Date) > since
  }, 'a look')
})

/** What a heartbeat finds at a time, whose job last succeeded at another one, and could call since a third. */
async function foundAt(
  cron: string,
  succeeded: Date,
  now: Date,
  listensSince = new Date(0),
  before: 'ok' | 'fail' = 'ok',
) {
  const check = { type: 'heartbeat', cron, tz: 'Europe/Berlin', grace: '1m' } as const
  const beats = async () => ({
    beat_at: succeeded,
    beat_failed: false,
    beat_ms: null,
    beat_text: '',
    begun_at: null,
    first_beat_at: succeeded,
    state: before,
  })
  const { state } = await runCheck(check, {
    signal: new AbortController().signal,
    marker: undefined,
    redact: createRedact(() => []),
    beat: beats,
    listensSince,
    now: () => now,
  })
  return state
}

await t.test('by a crontab, over a change of the clock', async (t) => {
  for (const [cron, succeeded, due] of [
    ['0 3 * * *', '2026-03-28T02:05:00Z', '2026-03-29T01:00:00Z'],
    ['0 4 * * *', '2026-10-24T02:05:00Z', '2026-10-25T03:00:00Z'],
    ['0 3 * * 1-5', '2026-11-27T02:01:00Z', '2026-11-30T02:00:00Z'],
    ['0 3 * * *', '2026-11-27T01:59:50Z', '2026-11-28T02:00:00Z'],
  ] as const) {
    const end = new Date(due).getTime() + 60_000
    const found = [end, end + 1_000].map((at) => foundAt(cron, new Date(succeeded), new Date(at)))
    t.same(await Promise.all(found), ['ok', 'fail'], `${cron} after ${succeeded}`)
  }
})

await t.test('what fell due while nothing listened has its grace once more', async (t) => {
  const at = (time: string) => new Date(`2026-11-27T${time}Z`)
  const found = (now: string, listens: string, state?: 'fail') =>
    foundAt('0 3 * * *', at('01:00:00'), at(now), at(listens), state)
  t.equal(await found('05:00:30', '05:00:00'), 'ok', 'it may have called')
  t.equal(await found('05:01:01', '05:00:00'), 'fail', 'it has not called since')
  t.equal(await found('05:00:30', '05:00:00', 'fail'), 'fail', 'a failure is not over')
  t.equal(await found('05:00:30', '02:00:30'), 'fail', 'it fell due while calls were taken')
})

await t.test('what is no address of a heartbeat', async (t) => {
  const before = await query(`select beat_at, begun_at from ops.checks order by id`)
  for (const [path, status, method] of [
    [`/beat/${tokens.backup}x`, 404],
    ['/beat/', 404],
    [`/beat/${tokens.backup}/stop`, 404],
    [`/beat/${tokens.backup}/1000`, 404],
    [`/beat/${tokens.backup}/start/x`, 404],
    [`/beat/${tokens.backup}?status=fail`, 400],
    [`/beat/${tokens.backup}/fail?x`, 400],
    [`/beat/${tokens.backup}`, 405, 'PUT'],
    ['/beat/%00', 404],
  ] as const) {
    t.match(await call(path, { method: method ?? 'GET' }), { status }, `${method ?? ''} ${path}`)
  }
  t.same(await query(`select beat_at, begun_at from ops.checks order by id`), before)
  t.notMatch(ops.server.logs().join('\n'), tokens.backup, 'no token is in the log')
})

await t.test('a monitor elsewhere is called while checks run', async (t) => {
  let status = 500
  const key = secret('monitor')
  const monitor = await startReceiver(t, (_, response) => void response.writeHead(status).end())
  const GATEHOUSE_HEARTBEAT_URL = `${monitor.url}?key=${key}`
  const watched = () => startOps(t, postgres, { ...env, OPS_INVENTORY, GATEHOUSE_HEARTBEAT_URL })
  const failing = await watched()
  const line = await until(
    async () => failing.server.logs().find((text) => text.includes('heartbeat not taken')),
    'the log to say that the monitor fails',
  )
  t.match(JSON.parse(line), { level: 'warn', error: 'it answered 500' })
  t.notMatch(failing.server.logs().join(), key)
  status = 200
  const before = monitor.received.length
  const good = await watched()
  await until(async () => monitor.received.length > before, 'the call')
  t.match(monitor.received.at(-1), { method: 'GET', path: `/?key=${key}` })
  t.notMatch(good.server.logs().join(), 'heartbeat not taken')
  t.match((await request(`${good.base}/healthz`)).json(), { status: 'ok' })
})
