import { t } from 'tap'
import type { Test } from 'tap'
import { CHAT_KEY, deliverAlert, startBriefs } from '../helpers/alerts-setup.ts'
import { backends, eachBackend } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { ended, startGate, startOpsProcess, trigger } from '../helpers/ops-setup.ts'
import type { Event, OpsServer, Session } from '../helpers/ops-setup.ts'
import { run } from '../helpers/postgres.ts'
import { until } from '../helpers/until.ts'

async function sessions({ api }: OpsServer): Promise<readonly Session[]> {
  const { json } = await api<{ sessions: readonly Session[] }>('GET', '/sessions?limit=1000')
  return json.sessions
}

async function events({ api }: OpsServer, query = ''): Promise<readonly Event[]> {
  return (await api<{ events: readonly Event[] }>('GET', `/events${query}`)).json.events
}

await t.test('30 starts at once on two servers: one session runs', async (t: Test) => {
  const [gate, briefs] = [await startGate(t), await startBriefs(t)]
  const env = { OPS_CHAT_API_KEY: CHAT_KEY, OPS_INVENTORY: gate.inventory, ...briefs.env }
  const one = await startOpsProcess(t, backends[1], env)
  const two = await startOpsProcess(t, backends[1], one.env)
  await until(() => gate.waiting() > 0, 'the scheduled session')
  t.equal((await sessions(two)).length, 1, 'two schedulers started one')

  for (let round = 0; round < 3; round++) {
    const before = (await sessions(one)).length
    gate.open()
    await ended(one)
    const starts: Promise<boolean>[] = []
    for (let at = 0; at < 30; at++) {
      const { base, api } = at % 2 === 0 ? one : two
      const kind = at % 3
      if (kind === 0) {
        starts.push(
          api('POST', '/sessions/trigger', { prompt: `start ${at}` }).then(({ status, text }) => {
            if (status !== 201 && status !== 409) throw new Error(`${status} ${text}`)
            return status === 201
          }),
        )
      } else if (kind === 1) {
        starts.push(
          deliverAlert(base, `alert ${at}`).then(({ status, json }) => {
            if (status !== 202) throw new Error(`${status} ${json.error}`)
            return json.status === 'triggered'
          }),
        )
      } else {
        const answered = request(`${base}/sessions/trigger`, {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: `prompt=start+${at}&tier=auto`,
          timeoutMs: 30_000,
        })
        starts.push(
          answered.then(({ status }) => {
            if (status !== 303 && status !== 409) throw new Error(`the form: ${status}`)
            return status === 303
          }),
        )
      }
    }
    const won = (await Promise.all(starts)).filter(Boolean)
    t.equal(won.length, 1, 'one start was taken')
    const after = await sessions(two)
    t.equal(after.length, before + 1, 'one session more')
    t.equal(after.filter(({ status }) => status === 'running').length, 1)
    await until(() => gate.waiting() > 0, 'its check')
    t.equal(gate.waiting(), 1, 'one of them is run')
  }
  const ids = (await sessions(one)).map(({ id }) => id)
  t.same(ids, [4, 3, 2, 1], 'a start that is refused takes no id')
  gate.open(true)
  await ended(one)
})

await t.test('two schedulers start one session an interval', async (t: Test) => {
  const env = { OPS_INTERVAL: '2' }
  const one = await startOpsProcess(t, backends[1], env)
  const two = await startOpsProcess(t, backends[1], one.env)
  await until(async () => (await sessions(one)).length >= 4, 'four scheduled sessions', 30_000)
  await one.server.stop()
  const starts = (await sessions(two)).map(({ started_at }) => Date.parse(started_at)).toReversed()
  const gaps = starts.slice(1).map((at, i) => at - (starts[i] ?? at))
  t.ok(
    gaps.every((gap) => gap >= 1_000),
    `none is started twice: ${gaps.join(', ')} ms apart`,
  )
})

await eachBackend(t, 'kill -9 of the server', async (t: Test, backend) => {
  const gate = await startGate(t)
  const first = await startOpsProcess(t, backend, { OPS_INVENTORY: gate.inventory })
  await until(() => gate.waiting() > 0, 'the first session')
  const [left] = await sessions(first)
  t.equal(left?.status, 'running')
  await first.server.kill()

  const second = await startOpsProcess(t, backend, first.env)
  const failed = await ended(second, left?.id)
  t.match(failed, { id: left?.id, status: 'failed', exit_code: 1, ended_at: /Z$/ })
  t.ok((failed.duration_ms ?? 0) > 0)
  const [event] = await events(second, '?level=critical')
  t.match(event, {
    ...{ session_id: left?.id, level: 'critical', service: 'gatehouse' },
    message: /^Session \d+ failed: the process that ran it is gone$/,
  })
  const next = await trigger(second)
  t.equal(next.status, 'running', 'another one may run')
  await second.server.stop()

  const third = await startOpsProcess(t, backend, first.env)
  t.match(await ended(third, next.id), { status: 'stopped', exit_code: 1 }, 'SIGTERM stops it')
  t.equal((await events(third, '?level=critical')).length, 1, 'the failure was told once')
})

await t.test('a lease that lapses is ended by another instance', async (t: Test) => {
  const gate = await startGate(t)
  const one = await startOpsProcess(t, backends[1], { OPS_INVENTORY: gate.inventory })
  await until(() => gate.waiting() > 0, 'the first session')
  const url = one.env['DATABASE_URL'] ?? ''
  // As an instance on another machine that has been silent for long.
  const lapse = `update ops.sessions set holder = '1/1', machine = 'elsewhere', heartbeat_at = $1
    where status = 'running'`
  await run(url, lapse, [new Date()])
  const [held] = await sessions(one)
  t.equal(held?.status, 'running', 'a fresh lease of a machine elsewhere stays')
  await run(url, lapse, [new Date(Date.now() - 21_000)])
  const failed = await ended(one, held?.id)
  t.match(failed, { status: 'failed', exit_code: 1 })
  t.match(await events(one, '?level=critical'), [{ session_id: held?.id }])
  await until(() => gate.waiting() === 0, 'the one that lost it to leave')
  const next = await trigger(one)
  gate.open(true)
  t.match(await ended(one, next.id), { status: 'completed' })
  t.match(
    (await sessions(one)).find(({ id }) => id === held?.id),
    { status: 'failed' },
  )
})
