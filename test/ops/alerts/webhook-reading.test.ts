import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { t } from 'tap'
import { CHAT_KEY, deliverAlert, startBriefs } from '../../helpers/alerts.ts'
import { refusal } from '../../helpers/model.ts'
import { postgres } from '../../helpers/backends.ts'
import {
  beginByHand,
  ended,
  endByHand,
  inventoryFile,
  startOps,
  startOpsProcess,
} from '../../helpers/ops.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { until } from '../../helpers/until.ts'

const briefs = await startBriefs(t)
const env = {
  OPS_CHAT_API_KEY: CHAT_KEY,
  ...(await postgres.env(t)),
  ...briefs.env,
  OPS_INVENTORY: await inventoryFile(t, { services: [] }),
}

/** The alerts whose text contains this, in the order in which they first came. */
function alerts(text: string) {
  return postgres.query(
    env,
    `select a.outcome, a.problem, (select max(s.id)::int from ops.sessions s where s.alert_id = a.id) as session_id, t.payload
       from ops.alerts a join ops.alert_texts t on t.alert_id = a.id
      where strpos(t.payload, $1) > 0
      order by id`,
    [text],
  )
}

/** Waits until none of them is being read any more. */
function allRead(text: string) {
  return until(async () => {
    const found = await alerts(text)
    return found.length > 0 && found.every(({ outcome }) => outcome !== 'received') && found
  }, 'the alert to be read')
}

/** Delivers an alert, and waits until the model is asked about it. */
async function deliverAndRead(base: string, body: string) {
  const asked = briefs.asked.length
  const answer = deliverAlert(base, body)
  await until(() => briefs.asked.length > asked, 'the model to be asked')
  return { answer, asked: asked + 1 }
}

/** Stores an alert as a reader leaves it that was killed on some other machine. */
async function leaveBehind(text: string) {
  await postgres.query(
    env,
    `with alert as (
       insert into ops.alerts (fingerprint, content, first_seen, last_seen, reading_since, outcome, holder, machine)
       values ($1, 'c', now(), now(), now() - interval '31 s', 'received', '1/1', 'elsewhere') returning id
     )
     insert into ops.alert_texts select id, 'c', 't', $1, 1, now(), now() from alert`,
    [text],
  )
}

const STOPPED = { outcome: 'failed', problem: 'server stopped', session_id: null }

/** Asks to come again after this many seconds. */
const busyFor = (seconds: string) => refusal(429, 'busy', { 'retry-after': seconds })

await t.test('a stop while alerts are read loses nothing, and starts nothing', async (t) => {
  const fallback = { ...env, OPS_BRIEF_FALLBACK: 'true' }
  const one = await startOpsProcess(t, postgres, fallback)
  const before = await ended(one)
  briefs.hold()
  const interrupted = deliverAlert(one.base, 'stopped')
  const waiting = deliverAlert(one.base, 'stopped while it waited')
  await until(() => briefs.asked.length === 1, 'the model to be asked')
  await until(async () => (await alerts('stopped')).length === 2, 'both to be kept')
  const stopped = one.server.stop()
  for (const answer of await Promise.all([interrupted, waiting])) {
    t.match(answer, { status: 503, json: { error: 'stopping', message: 'again' } })
    t.ok(answer.headers['retry-after'])
  }
  t.equal((await stopped).code, 0)
  t.match(await alerts('stopped'), [STOPPED, STOPPED])
  const sessions = await postgres.query(env, 'select max(id)::int as id from ops.sessions')
  t.same(sessions, [{ id: before.id }])
})

await t.test('two instances', async (t) => {
  const two = await startOpsProcess(t, postgres, env)
  await ended(two)
  const release = briefs.hold()
  const { answer, asked: before } = await deliverAndRead(two.base, 'being read')
  // Of two that are being read, the other one's reader is gone, on some other machine.
  await leaveBehind('left')
  // A brief has 9 s: the one that starts meanwhile is the one that needs no process of its own.
  const one = await startOps(t, postgres, env)

  await t.test('an alert that another instance reads is left to it', async (t) => {
    // The other one may be first: it looks every 10 s.
    const isRead = () =>
      [one, two].some(({ server }) => server.logs().join().includes('alert is read again'))
    await until(isRead, 'the alert whose reader is gone')
    t.equal(briefs.asked.length, before, 'it waits for the other one')
    release('The brief.')
    t.match(await answer, { json: { status: 'triggered' } })
    t.match(await allRead('being read'), [{ outcome: 'triggered' }])
    t.match(await allRead('left'), [{ outcome: 'acknowledged', payload: 'left' }])
    t.equal(briefs.asked.length, before)
    await ended(one)
  })

  await t.test('parallel alerts: one model call at a time', async (t) => {
    const asked = briefs.asked.length
    const deliver = (name: string) =>
      Array.from({ length: 8 }, (_, at) =>
        deliverAlert(at % 2 === 0 ? one.base : two.base, `${name} ${at}`),
      )
    const release = briefs.hold()
    const first = deliver('first')
    await until(async () => (await alerts('first')).length === 8, 'them to be kept')
    await until(() => briefs.asked.length > asked, 'the model to be asked')
    briefs.answer(['Not asked.'])
    release('The brief.')
    const answers = await Promise.all(first)
    t.ok(answers.every(({ status }) => status === 202))
    t.equal(answers.filter(({ json }) => json.status === 'triggered').length, 1)
    const others = 'the others are acknowledged, also when its session has ended'
    t.equal(briefs.asked.length, asked + 1, others)
    await ended(one)

    // One that fails lets the next one have its turn.
    briefs.answer([refusal(400, 'no')])
    const second = await Promise.all(deliver('second'))
    t.ok(second.every(({ status }) => status === 502))
    t.equal(briefs.asked.length, asked + 9)

    briefs.hold()
    const late = await Promise.all(deliver('third'))
    t.ok(late.every(({ status, json }) => status === 502 && json.error === 'synthesis failed'))
    const said = late.map(({ json }) => json.message)
    t.match(said.join(), 'no brief within 9 s')
    t.ok(
      said.every((text = '') => /no brief|other alerts were being/.test(text)),
      said.join(),
    )
  })

  await t.test('Retry-After is obeyed within the deadline', async (t) => {
    const asked = briefs.asked.length
    briefs.answer([busyFor('11')])
    const refused = await deliverAlert(one.base, 'too long')
    t.match(refused, { status: 502, json: { message: 'busy, and may be asked again in 11 s' } })
    t.equal(briefs.asked.length, asked + 1, 'it is not waited for in vain')
    briefs.answer([busyFor('1')])
    const soon = deliverAlert(one.base, 'soon enough')
    await until(() => briefs.asked.length === asked + 2, 'the first try')
    briefs.answer(['The brief.'])
    t.match(await soon, { status: 202, json: { status: 'triggered' } })
    t.equal(briefs.asked.length, asked + 3)
    await ended(one)
  })

  await t.test('a sender that hung up is noted, and its alert is read', async (t) => {
    const asked = briefs.asked.length
    const release = briefs.hold()
    const socket = connect(Number(new URL(one.base).port), '127.0.0.1')
    socket.write(
      `POST /api/v1/webhook HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${CHAT_KEY}\r\nContent-Length: 6\r\n\r\nhungup`,
    )
    await until(() => briefs.asked.length === asked + 1, 'the model to be asked')
    socket.destroy()
    const isLogged = () => one.server.logs().some((line) => line.includes('alert sender hung up'))
    await until(isLogged, 'the server to notice')
    release('The brief.')
    t.match(await allRead('hungup'), [{ outcome: 'triggered', problem: 'hung up' }])
    await ended(one)
  })

  await t.test(
    'no model is asked about an alert that was left while a session runs',
    async (t) => {
      const asked = briefs.asked.length
      briefs.answer(['Not asked.'])
      const session = await beginByHand(postgres, env)
      await leaveBehind('too late')
      t.match(await allRead('too late'), [{ outcome: 'acknowledged', session_id: null }])
      t.equal(briefs.asked.length, asked)
      await endByHand(postgres, env, session, 'completed')
    },
  )

  await t.test('a crash while an alert is read loses nothing', async (t) => {
    await one.server.stop()
    briefs.hold()
    const { answer } = await deliverAndRead(two.base, '{"tier":2,"text":"killed"}')
    answer.catch(() => undefined)
    await two.server.kill()
    t.match(await alerts('killed'), [{ outcome: 'received' }])
    // As if no session had begun for long: the scheduled one would be first otherwise.
    await postgres.query(env, `update ops.settings set scheduled_at = now() - interval '1 day'`)
    briefs.answer(['It was killed.'])
    const three = await startOps(t, postgres, env)
    const [alert] = await allRead('killed')
    t.match(alert, { outcome: 'triggered', session_id: Number })
    const session = await ended(three, Number(alert?.['session_id']))
    t.match(session, { trigger: 'alert', prompt_text: 'It was killed.', tier: 2 })
    t.match(briefs.asked.at(-1)?.messages[1]?.content, 'killed')
    t.match(await alerts('stopped'), [STOPPED, STOPPED], 'their senders try again')
  })
})

await t.test('a brief counts against the budget of the day', async (t) => {
  const prices = join(await temporaryFolder(t, 'prices'), 'prices.json')
  writeFileSync(prices, JSON.stringify({ reader: { input: 10, output: 10 } }))
  const ops = await startOps(t, postgres, {
    ...env,
    OPS_WEBHOOK_MODEL: 'reader',
    OPS_PRICES: prices,
    OPS_DAY_BUDGET_USD: '0.01',
  })
  const asked = briefs.asked.length
  const usage = { prompt_tokens: 600, completion_tokens: 100 }
  const message = { role: 'assistant', content: ' ' }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  briefs.answer([{ body: JSON.stringify({ choices, usage }) }])
  const budget = 'budget of the day of $0.01 (OPS_DAY_BUDGET_USD) is spent: $0.0140'
  for (const [body, message] of [
    // What is of no use is paid for as well.
    ['paid 1', 'gave no text'],
    ['paid 2', 'gave no text'],
    ['spent', budget],
  ] as const) {
    t.match(await deliverAlert(ops.base, body), { status: 502, json: { message } })
  }
  t.equal(briefs.asked.length, asked + 2, 'no model is asked any more')
  t.match(await alerts('spent'), [{ outcome: 'failed', problem: 'budget of the day' }])
  t.match(await ops.page('/'), '$0.014', 'the dashboard counts it')
})
