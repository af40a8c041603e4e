import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { addDestination, destination, listed, untilListed } from '../helpers/destinations.ts'
import { request } from '../helpers/http.ts'
import { addProvider, eventIds, post, postForm, startHooks } from '../helpers/hooks.ts'
import type { Ack, Hooks } from '../helpers/hooks.ts'
import { attemptsOf, startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

/** Seconds between one try and the next; a wait is up to a fifth longer. */
const WAITS = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]
/** What a slow machine may add between the end of an attempt and its record. */
const SLACK_S = 10

await onPostgres(t, 'deliveries that fail', async (t: Test, backend) => {
  const { base, env, server } = await startHooks(t, backend, { HOOKS_REPLAY_TARGETS: '127.0.0.1' })
  await addProvider(base, 'lan', { open: true })
  let answer: { status: number; headers?: Record<string, string> } = { status: 500 }
  const receiver = await startReceiver(t, (_, response) => {
    response.writeHead(answer.status, answer.headers).end('an answer\0')
  })
  const send = async (): Promise<number> => (await post(base, 'generic/lan', '{}')).json<Ack>().id

  /** The tries of a delivery, and the seconds from its newest attempt to the next one. */
  async function delivery(name: string, id: number) {
    const [row] = await backend.query(
      env,
      `select o.tries, extract(epoch from o.next_at - d.last_at)::float8 as wait
         from hooks.destination_deliveries o
         join hooks.destinations d on d.name = o.destination
        where o.destination = $1 and o.event_id = $2 and o.claimed_until is null`,
      [name, id],
    )
    return row as { tries: number; wait: number | null } | undefined
  }
  async function untilTried(name: string, id: number, tries: number) {
    return until(async () => {
      const row = await delivery(name, id)
      return row?.tries === tries && row
    }, `try ${tries} of event ${id}`)
  }

  await t.test('eight tries, each later than the one before, then dead', async (t) => {
    answer = { status: 500 }
    await addDestination(env, 'slow', receiver.url)
    const id = await send()
    for (const [at, wait] of WAITS.entries()) {
      const row = await untilTried('slow', id, at + 1)
      const longest = wait * 1.2 + SLACK_S
      t.ok((row.wait ?? 0) >= wait && (row.wait ?? 0) <= longest, `${row.wait} s after ${at + 1}`)
      await destination(env, 'retry', 'slow')
    }
    await untilListed(env, 'slow', { waiting: 0, dead: 1, delivered: 0, last_status: 500 })
    t.equal((await untilTried('slow', id, 8)).wait, null)
    const attempts = await attemptsOf(base, id)
    t.same(
      attempts.map(({ body }) => body),
      Array.from({ length: 8 }, () => 'an answer\u{FFFD}'),
      'why a try failed may stand in its answer',
    )

    answer = { status: 200 }
    t.match((await destination(env, 'retry', 'slow')).stderr, /^0 deliveries are tried again/)
    const later = String(id + 1)
    const none = await destination(env, 'retry', 'slow', '--dead', '--since', later)
    t.match(none.stderr, /^0 deliveries/)
    const one = await destination(env, 'retry', 'slow', '--dead', '--since', String(id))
    t.match(one.stderr, /^1 delivery is tried again/)
    await untilListed(env, 'slow', { waiting: 0, dead: 0, delivered: 1 })
    await destination(env, 'remove', 'slow')
  })

  await t.test('Retry-After makes a wait longer, never shorter', async (t) => {
    const inAnHour = new Date(Date.now() + 3_600_000).toUTCString()
    const rows: readonly (readonly [header: string, least: number, most: number])[] = [
      ['120', 120, 120],
      [inAnHour, 3_590 - SLACK_S, 3_601],
      ['1', 5, 6],
      ['9999999', 86_400, 86_400],
      ['soon', 5, 6],
      ['-5', 5, 6],
    ]
    for (const [at, [header, least, most]] of rows.entries()) {
      // The removal of the one before may still be under way.
      const name = `busy-${at}`
      answer = { status: 503, headers: { 'Retry-After': header } }
      await addDestination(env, name, receiver.url)
      const { wait } = await untilTried(name, await send(), 1)
      t.ok(wait !== null && wait >= least && wait <= most + SLACK_S, `${header}: ${wait} s`)
      await destination(env, 'remove', name)
    }
  })

  await t.test('410 is final, an address that became private is tried again', async (t) => {
    answer = { status: 410 }
    await addDestination(env, 'gone', receiver.url)
    const id = await send()
    await untilListed(env, 'gone', { waiting: 0, dead: 1, last_status: 410 })
    t.match(await attemptsOf(base, id), [{ outcome: 'failed', answer: /^410 / }])
    answer = { status: 204 }
    // As if its name led elsewhere now.
    await backend.query(
      env,
      `with moved as (
         update hooks.destinations set url = 'http://[::1]:9/' where name = 'gone' returning name
       )
       select pg_notify('hooks_config', '') from moved`,
    )
    const next = await until(
      async () => {
        const event = await send()
        const [attempt] = await until(async () => {
          const all = await attemptsOf(base, event)
          return all.length > 0 && all
        }, 'an attempt')
        return attempt?.outcome === 'refused' && attempt
      },
      'the new address to be known',
      20_000,
    )
    t.match(next, {
      detail: /not on the public internet; an operator can allow it in HOOKS_REPLAY/,
    })
    const refused = await untilListed(env, 'gone', { waiting: 1, dead: 1, last_status: null })
    // As if its name led to the public internet again.
    await backend.query(
      env,
      `with moved as (update hooks.destinations set url = $1 where name = 'gone' returning name)
       select pg_notify('hooks_config', '') from moved`,
      [receiver.url],
    )
    await until(async () => {
      await destination(env, 'retry', 'gone')
      return (await listed(env, 'gone')).waiting === 0
    }, 'what was refused to arrive')
    t.match(await listed(env, 'gone'), { dead: 1, delivered: refused.delivered + 1 })
    await destination(env, 'remove', 'gone')
  })

  await t.test('an attempt that breaks is a failed try', async (t) => {
    answer = { status: 204 }
    await addDestination(env, 'torn', receiver.url)
    await destination(env, 'disable', 'torn')
    const [torn, whole] = [await send(), await send()]
    await backend.query(env, `update hooks.events set headers = 'torn' where id = $1`, [torn])
    await destination(env, 'enable', 'torn')
    await untilListed(env, 'torn', { waiting: 1, delivered: 1 })
    t.equal((await untilTried('torn', torn, 1)).tries, 1)
    const [line] = logged(server, 'delivery broke')
    t.match(line, { destination: 'torn', event: torn })
    const kept = `select outcome, detail from hooks.attempts where event_id = $1`
    t.match(await backend.query(env, kept, [torn]), [
      { outcome: 'failed', detail: /^a defect of Gatehouse; the line "delivery broke"/ },
    ])
    t.match(await attemptsOf(base, whole), [{ outcome: 'delivered' }])
    await backend.query(env, `update hooks.events set headers = '[]' where id = $1`, [torn])
    await destination(env, 'retry', 'torn')
    await untilListed(env, 'torn', { waiting: 0, delivered: 2 })
    await destination(env, 'remove', 'torn')
  })

  await t.test('twenty dead in a row disable it and raise an alarm', async (t) => {
    answer = { status: 410 }
    await addDestination(env, 'broken', receiver.url)
    for (let n = 0; n < 19; n++) await send()
    await untilListed(env, 'broken', { dead: 19, disabled_by: null })
    answer = { status: 204 }
    await send()
    await untilListed(env, 'broken', { delivered: 1 })
    answer = { status: 410 }
    for (let n = 0; n < 19; n++) await send()
    await untilListed(env, 'broken', { dead: 38, disabled_by: null })
    t.equal(await reasons(base), 'ok')
    await send()
    await untilListed(env, 'broken', { dead: 39, disabled_by: 'failures' })
    const degraded = 'degraded: disabled after failures: 1 destination'
    await until(async () => (await reasons(base)) === degraded, 'the alarm')
    const { text } = await request(`${base}/`)
    t.match(
      text,
      /1 destination failing[\s\S]*<li>.*broken<\/a>: disabled after failures;/,
      'the dashboard names it',
    )
    t.match(
      (await request(`${base}/metrics`)).text,
      /_destination_failed\{destination="broken"\} 1/,
    )
    t.match((await destination(env, 'list')).stdout, /broken +disabled by failures/)
    await until(() => logged(server, 'alarm').length === 1, 'the line of the alarm')

    answer = { status: 204 }
    await send()
    await destination(env, 'retry', 'broken', '--dead')
    t.match(await listed(env, 'broken'), { waiting: 39, delivered: 1 }, 'nothing goes out yet')
    await destination(env, 'enable', 'broken')
    await untilListed(env, 'broken', { waiting: 0, dead: 0, delivered: 41, disabled_by: null })
    await until(async () => (await reasons(base)) === 'ok', 'the end of the alarm')
    await until(() => logged(server, 'alarm ended').length === 1, 'its line')
    await destination(env, 'remove', 'broken')
  })

  await t.test('retention spares what is owed for seven days, then names the gap', async (t) => {
    answer = { status: 500 }
    await addDestination(env, 'owed', receiver.url)
    const ids = [await send(), await send(), await send()]
    await untilListed(env, 'owed', { waiting: 3 })
    await destination(env, 'disable', 'owed')
    await destination(env, 'enable', 'owed')
    await prune(base)
    await until(async () => (await eventIds(base)).length === 3, 'those before to be removed')
    t.same((await eventIds(base)).toReversed(), ids, 'all are spared')
    await backend.query(
      env,
      `update hooks.events set received_at = now() - interval '8 days' where id <= $1`,
      [ids[1] ?? 0],
    )
    await prune(base)
    await until(async () => (await eventIds(base)).length === 1, 'the old ones to be removed')
    t.match(await listed(env, 'owed'), { waiting: 1, gap: 2, gap_through: ids[1] })
    const [line] = await until(() => {
      const lines = logged(server, 'events removed before they were delivered')
      return lines.length > 0 && lines
    }, 'the line of the gap')
    t.match(line, { destination: 'owed', events: 2, through: ids[1] })

    await destination(env, 'disable', 'owed')
    const last = [await send(), await send()]
    await prune(base)
    await until(async () => (await eventIds(base)).length === 1, 'a disabled one to spare nothing')
    t.match(await listed(env, 'owed'), { waiting: 0, gap: 4, gap_through: last[0] })
    answer = { status: 200 }
    await destination(env, 'enable', 'owed')
    await untilListed(env, 'owed', { delivered: 1, waiting: 0 })
  })
})

/** Keeps one event, if no destination needs more. */
async function prune(base: string): Promise<void> {
  await postForm(base, '/settings', { retention_max_rows: '1' })
}

async function reasons(base: string): Promise<string> {
  const { text } = await request(`${base}/healthz`)
  const { status, reasons: list = [] }: { status: string; reasons?: readonly string[] } =
    JSON.parse(text)
  return [status, ...list].join(': ')
}

function logged({ logs }: Hooks['server'], message: string) {
  return logs()
    .map((line) => JSON.parse(line) as { msg: string })
    .filter(({ msg }) => msg === message)
}
