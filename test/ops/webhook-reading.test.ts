import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { t } from 'tap'
import { CHAT_KEY, deliverAlert, startBriefs } from '../helpers/alerts-setup.ts'
import { backends } from '../helpers/backends.ts'
import { ended, startGate, startOpsProcess } from '../helpers/ops-setup.ts'
import type { OpsServer, Session } from '../helpers/ops-setup.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

/** The alerts that are kept, in the order in which they first came. */
async function alerts({ env }: OpsServer) {
  return postgres.query(
    env,
    `select a.outcome, a.problem, a.session_id::int, t.payload
       from ops.alerts a join ops.alert_texts t on t.alert_id = a.id order by id`,
  )
}

async function sessions({ api }: OpsServer): Promise<readonly Session[]> {
  return (await api<{ sessions: readonly Session[] }>('GET', '/sessions')).json.sessions
}

t.test('a stop and a crash while an alert is read lose nothing', async (t) => {
  const briefs = await startBriefs(t)
  const env = { OPS_CHAT_API_KEY: CHAT_KEY, ...briefs.env }
  const one = await startOpsProcess(t, postgres, env)
  await ended(one)
  briefs.answer(null)
  const interrupted = deliverAlert(one.base, 'stopped')
  const waiting = deliverAlert(one.base, 'stopped while it waited')
  await until(() => briefs.asked.length === 1, 'the model to be asked')
  await until(async () => (await alerts(one)).length === 2, 'both to be kept')
  const stopped = one.server.stop()
  for (const answer of await Promise.all([interrupted, waiting])) {
    t.match(answer, { status: 503, json: { error: /stopping/, message: /again/ } })
    t.ok(answer.headers['retry-after'])
  }
  t.equal((await stopped).code, 0)
  const kept = { outcome: 'failed', problem: /server stopped/, session_id: null }
  t.match(await alerts(one), [kept, kept])

  const two = await startOpsProcess(t, postgres, one.env)
  void deliverAlert(two.base, '{"tier":2,"text":"killed"}').catch(() => undefined)
  await until(() => briefs.asked.length === 2, 'the model to be asked again')
  await two.server.kill()
  t.match((await alerts(two))[2], { outcome: 'received' })
  // As if no session had begun for long: the scheduled one would be first otherwise.
  await postgres.query(one.env, `update ops.settings set scheduled_at = now() - interval '1 day'`)
  briefs.answer('It was killed.')
  const three = await startOpsProcess(t, postgres, one.env)
  const session = await until(
    async () => (await sessions(three)).find(({ trigger: by }) => by === 'alert'),
    'a session of the alert',
  )
  t.match(session, { prompt_text: 'It was killed.', tier: 2 })
  t.match(briefs.asked.at(-1)?.body.messages[1]?.content, /killed/)
  const rows = await until(async () => {
    const found = await alerts(three)
    return found.every(({ outcome }) => outcome !== 'received') && found
  }, 'the alert to be read')
  t.match(rows, [kept, kept, { outcome: 'triggered', session_id: session.id }])
  await ended(three, session.id)
})

t.test('an alert that another instance reads is left to it', async (t) => {
  const briefs = await startBriefs(t)
  const one = await startOpsProcess(t, postgres, { OPS_CHAT_API_KEY: CHAT_KEY, ...briefs.env })
  await ended(one)
  briefs.answer(null)
  const answer = deliverAlert(one.base, 'being read')
  await until(() => briefs.asked.length === 1, 'the model to be asked')
  const two = await startOpsProcess(t, postgres, one.env)
  // Of two that are being read, the other one's reader is gone, on some other machine.
  await postgres.query(
    one.env,
    `with alert as (
       insert into ops.alerts (fingerprint, content, first_seen, last_seen, reading_since, outcome, holder, machine)
       values ('f', 'c', now(), now(), now() - interval '31 s', 'received', '1/1', 'elsewhere') returning id
     )
     insert into ops.alert_texts select id, 'c', 't', 'left', 1, now(), now() from alert`,
  )
  const three = await startOpsProcess(t, postgres, one.env)
  await until(
    () => three.server.logs().concat(two.server.logs()).join().includes('alert is read again'),
    'it',
    15_000,
  )
  t.equal(briefs.asked.length, 1, 'it waits for the other one')
  briefs.release('The brief.')
  t.match(await answer, { json: { status: 'triggered' } })
  const rows = await until(async () => {
    const found = await alerts(one)
    return found.every(({ outcome }) => outcome !== 'received') && found
  }, 'the other one to be read')
  t.match(rows, [{ outcome: 'triggered' }, { outcome: 'acknowledged', payload: 'left' }])
  t.equal(briefs.asked.length, 1)
})

t.test('parallel alerts on two instances: one model call at a time', async (t) => {
  const [gate, briefs] = [await startGate(t), await startBriefs(t)]
  gate.open(true)
  const one = await startOpsProcess(t, postgres, {
    ...{ OPS_CHAT_API_KEY: CHAT_KEY, OPS_INVENTORY: gate.inventory },
    ...briefs.env,
  })
  const two = await startOpsProcess(t, postgres, one.env)
  await ended(one)
  const deliver = (name: string) =>
    Array.from({ length: 8 }, (_, at) =>
      deliverAlert(at % 2 === 0 ? one.base : two.base, `${name} ${at}`),
    )
  const kept = (count: number) =>
    until(async () => (await alerts(one)).length === count, 'them to be kept')

  briefs.answer(null)
  const first = deliver('first')
  await kept(8)
  await until(() => briefs.asked.length > 0, 'the model to be asked')
  briefs.answer('Not asked.')
  briefs.release('The brief.')
  const answers = await Promise.all(first)
  t.ok(answers.every(({ status }) => status === 202))
  t.equal(answers.filter(({ json }) => json.status === 'triggered').length, 1)
  t.equal(briefs.asked.length, 1, 'the others are acknowledged, also when its session has ended')
  await ended(one)

  // One that fails lets the next one have its turn.
  briefs.answer(400)
  const second = await Promise.all(deliver('second'))
  t.ok(second.every(({ status }) => status === 502))
  t.equal(briefs.asked.length, 9)

  briefs.answer(null)
  const late = await Promise.all(deliver('third'))
  t.ok(late.every(({ status }) => status === 502))
  const said = late.map(({ json }) => json.message ?? '')
  t.ok(said.some((text) => /no brief within 10 s/.test(text)))
  t.ok(said.some((text) => /other alerts were being read/.test(text)))
  t.equal(said.filter((text) => /no brief|other alerts/.test(text)).length, 8)
})

t.test('a brief counts against the budget of the day', async (t) => {
  const briefs = await startBriefs(t)
  const prices = join(await temporaryFolder(t, 'prices'), 'prices.json')
  writeFileSync(prices, JSON.stringify({ reader: { input: 10, output: 10 } }))
  const ops = await startOpsProcess(t, postgres, {
    ...{ OPS_CHAT_API_KEY: CHAT_KEY, OPS_WEBHOOK_MODEL: 'reader', OPS_PRICES: prices },
    ...{ OPS_DAY_BUDGET_USD: '0.01', ...briefs.env },
  })
  await ended(ops)
  const usage = { prompt_tokens: 600, completion_tokens: 100 }
  const message = { role: 'assistant', content: ' ' }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  briefs.answer({ bytes: JSON.stringify({ choices, usage }) })
  for (const at of [1, 2]) {
    const { status, json } = await deliverAlert(ops.base, `paid ${at}`)
    t.equal(status, 502)
    t.match(json.message, /gave no text/, 'one that is of no use is paid for as well')
  }
  const { status, json } = await deliverAlert(ops.base, 'spent')
  t.equal(status, 502)
  t.match(json.message, /budget of the day of \$0\.01 \(OPS_DAY_BUDGET_USD\) is spent: \$0\.0140/)
  t.equal(briefs.asked.length, 2, 'no model is asked any more')
  t.match((await alerts(ops))[2], { outcome: 'failed', problem: /budget of the day/ })
  const page = await (await fetch(`${ops.base}/`)).text()
  t.match(page, /\$0\.014/, 'the dashboard counts it')
})

t.test('Retry-After is obeyed within the deadline', async (t) => {
  const briefs = await startBriefs(t)
  const ops = await startOpsProcess(t, postgres, { OPS_CHAT_API_KEY: CHAT_KEY, ...briefs.env })
  await ended(ops)
  briefs.answer({ retryAfter: 11 })
  const refused = await deliverAlert(ops.base, 'too long')
  t.match(refused, { status: 502, json: { message: /busy, and may be asked again in 11 s/ } })
  t.equal(briefs.asked.length, 1, 'it is not waited for in vain')
  briefs.answer({ retryAfter: 2 })
  const soon = deliverAlert(ops.base, 'soon enough')
  await until(() => briefs.asked.length === 2, 'the first try')
  briefs.answer('The brief.')
  t.match(await soon, { status: 202, json: { status: 'triggered' } })
  t.equal(briefs.asked.length, 3)
})

t.test('a sender that hung up is noted, and its alert is read', async (t) => {
  const briefs = await startBriefs(t)
  const ops = await startOpsProcess(t, postgres, { OPS_CHAT_API_KEY: CHAT_KEY, ...briefs.env })
  await ended(ops)
  briefs.answer(null)
  const socket = connect(Number(new URL(ops.base).port), '127.0.0.1')
  socket.write(
    `POST /api/v1/webhook HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${CHAT_KEY}\r\nContent-Length: 4\r\n\r\ndown`,
  )
  await until(() => briefs.asked.length === 1, 'the model to be asked')
  socket.destroy()
  const isLogged = (): boolean =>
    ops.server.logs().some((line) => line.includes('alert sender hung up'))
  await until(isLogged, 'the server to notice')
  briefs.release('The brief.')
  const [row] = await until(async () => {
    const found = await alerts(ops)
    return found.every(({ outcome }) => outcome !== 'received') && found
  }, 'it to be read')
  t.match(row, { outcome: 'triggered', problem: /hung up/ })
})
