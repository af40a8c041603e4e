import { verify } from '@octokit/webhooks-methods'
import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { refuseCommands } from '../helpers/cli.ts'
import { createSender, sendAll } from '../helpers/deliveries.ts'
import {
  addDestination,
  destination,
  eventOf,
  listed,
  untilListed,
} from '../helpers/destinations.ts'
import { request } from '../helpers/http.ts'
import {
  addProvider,
  deliver,
  FORM_TYPE,
  post,
  postForm,
  SECRETS,
  shownIn,
  startHooks,
} from '../helpers/hooks.ts'
import type { Ack } from '../helpers/hooks.ts'
import { refuseAll } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'
import { attemptsOf, startReceiver } from '../helpers/replays.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

const LOCAL = { HOOKS_REPLAY_TARGETS: '127.0.0.1' }

/** The ids that a receiver got, in the order in which they came. */
function idsOf({ received }: Pick<Awaited<ReturnType<typeof startReceiver>>, 'received'>) {
  return received.map(eventOf)
}

function sorted(ids: readonly number[]): readonly number[] {
  return ids.toSorted((a, b) => a - b)
}

await onPostgres(t, 'delivery onwards', async (t: Test, backend) => {
  const { base, env, server } = await startHooks(t, backend, LOCAL)
  await addProvider(base, 'lan', { open: true })

  await t.test('each event from now on comes signed, with its id in the key', async (t) => {
    await deliver(base, 'code_host', '{"before": true}')
    const verified: boolean[] = []
    const receiver = await startReceiver(t, async ({ body, headers }, response) => {
      const signature = String(headers['x-hub-signature-256'])
      verified.push(await verify(SECRETS.code_host, body.toString(), signature))
      response.writeHead(204).end()
    })
    await addDestination(env, 'all', `${receiver.url}/in?token=geheim`)
    const ids: number[] = []
    for (let n = 0; n < 3; n++) {
      const headers = { 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': `all-${n}` }
      ids.push((await deliver(base, 'code_host', `{"n": ${n}}`, headers)).json<Ack>().id)
    }
    await untilListed(env, 'all', { delivered: 3, waiting: 0, dead: 0, last_status: 204 })
    t.same(sorted(idsOf(receiver)), ids)
    t.same(verified, [true, true, true])
    t.match(receiver.received[0], { path: '/in?token=geheim', method: 'POST' })
    t.match(receiver.received[0]?.headers, { 'x-github-event': 'push' })
    t.match(await attemptsOf(base, ids[0] ?? 0), [
      { outcome: 'delivered', kind: 'destination', target: `${receiver.url}/in?token=«redacted»` },
    ])
    t.notMatch((await destination(env, 'list')).stdout, 'geheim')
    t.match(await destination(env, 'remove', 'all'), { code: 0, stderr: 'all is removed\n' })
  })

  await t.test('filters choose by provider, type and a member of the body', async (t) => {
    const receiver = await startReceiver(t)
    await addDestination(env, 'lan', `${receiver.url}/lan`, '--provider', 'generic:lan')
    await addDestination(env, 'typed', `${receiver.url}/typed`, '--event-type', 'order.paid')
    await addDestination(env, 'member', `${receiver.url}/member`, '--json-member', 'a.0.b=2')
    await addDestination(env, 'none', `${receiver.url}/none`, '--provider', 'chat')
    const send = async (body: string, type: string) =>
      (await post(base, 'generic/lan', body, { 'X-Event-Type': type })).json<Ack>().id
    const one = await send('{"a": [{"b": 1}]}', 'order.paid')
    const two = await send('{"a": [{"b": 2}]}', 'order.sent')
    const three = await send('no JSON, but "b" = 2', 'order.paid')
    await untilListed(env, 'lan', { delivered: 3 })
    await untilListed(env, 'typed', { delivered: 2 })
    await untilListed(env, 'member', { delivered: 1 })
    await untilListed(env, 'none', { delivered: 0, waiting: 0 })
    const got = (path: string) =>
      sorted(idsOf({ received: receiver.received.filter((one) => one.path === path) }))
    t.same(got('/lan'), [one, two, three])
    t.same(got('/typed'), [one, three])
    t.same(got('/member'), [two])
    for (const name of ['lan', 'typed', 'member', 'none']) await destination(env, 'remove', name)
  })

  await t.test('what came while it was disabled is delivered afterwards', async (t) => {
    const receiver = await startReceiver(t)
    await addDestination(env, 'off', receiver.url)
    t.match(await destination(env, 'disable', 'off'), { code: 0, stderr: 'off is disabled\n' })
    await post(base, 'generic/lan', '{}')
    await post(base, 'generic/lan', '{}')
    t.match(await listed(env, 'off'), { delivered: 0, waiting: 0, disabled_by: 'operator' })
    await destination(env, 'enable', 'off')
    await untilListed(env, 'off', { delivered: 2, disabled_by: null })
    await destination(env, 'remove', 'off')
  })

  await t.test('ordered: one that fails holds up those behind it', async (t) => {
    let works = false
    const receiver = await startReceiver(t, (_, response) => {
      response.writeHead(works ? 200 : 503).end()
    })
    await addDestination(env, 'row', receiver.url, '--ordered')
    const ids: number[] = []
    for (let n = 0; n < 20; n++) {
      ids.push((await post(base, 'generic/lan', `{"n": ${n}}`)).json<Ack>().id)
    }
    await untilListed(env, 'row', { waiting: 20, last_status: 503 })
    t.same(new Set(idsOf(receiver)), new Set(ids.slice(0, 1)), 'only the first one was sent')
    works = true
    const failed = receiver.received.length
    t.match(await destination(env, 'retry', 'row'), { code: 0 })
    await untilListed(env, 'row', { delivered: 20, waiting: 0 })
    t.same(idsOf(receiver).slice(failed), ids)
    await destination(env, 'remove', 'row')
  })

  await t.test('a restart goes on where the last process was', async (t) => {
    let answers = false
    const receiver = await startReceiver(t, (_, response) => {
      if (answers) response.writeHead(204).end()
    })
    await addDestination(env, 'again', receiver.url)
    const { id: first } = (await post(base, 'generic/lan', '{}')).json<Ack>()
    await until(() => receiver.received.length === 1, 'a request that the stop cuts')
    await server.stop()
    answers = true
    const { hooks } = await startServer(t, { services: ['hooks'], env })
    const { id } = (await post(hooks, 'generic/lan', '{}')).json<Ack>()
    await untilListed(env, 'again', { delivered: 2 })
    t.same(sorted(idsOf(receiver)), [first, first, id])
    const attempts = await attemptsOf(hooks, first)
    t.match(attempts, [{ outcome: 'delivered' }], 'what was cut is no failure')
    t.equal(attempts.length, 1)
  })
})

/** Instances that share the work. */
const INSTANCES = 4
/** Requests to one destination that an instance has under way at a time. */
const AT_A_TIME = 64
/** More attempts of each event than are kept; those of one in 16 are looked at, by chance. */
const ATTEMPTS = `
insert into hooks.attempts (event_id, kind, target, outcome, ms, at)
select id, 'replay', 'http://127.0.0.1:9/', 'failed', 1, now() from hooks.events, generate_series(1, 201)`
/** The events that have as many as are kept. */
const FULL = 'select event_id from hooks.attempts group by event_id having count(*) = 200'

await onPostgres(t, 'destinations on several instances', async (t: Test, backend) => {
  const sender = createSender()
  const { base, env, server } = await startHooks(t, backend, { ...LOCAL, ...sender.env })
  const instances = [server]
  while (instances.length < INSTANCES) {
    instances.push(await startServer(t, { services: ['hooks'], env }))
  }
  const bases = instances.map(({ hooks }) => hooks)
  const held: (() => void)[] = []
  let holds = true
  const receiver = await startReceiver(t, (_, response) => {
    const answer = () => void response.writeHead(204).end()
    if (holds) held.push(answer)
    else answer()
  })
  // A request that is held must not time out meanwhile: it would be sent again.
  await addDestination(env, 'shared', receiver.url, '--timeout', '30')
  const sending = sendAll(t, [base], await sender.deliveries(400))
  const some = AT_A_TIME * (INSTANCES - 1)
  await until(() => held.length > some, 'each instance to send', 30_000)
  await backend.query(env, ATTEMPTS)
  holds = false
  for (const answer of held) answer()
  const acked = await sending
  await untilListed(env, 'shared', { delivered: 400, waiting: 0 })
  t.ok((await backend.query(env, FULL)).length > 0, 'older attempts of some events are removed')
  const ids = sorted(acked.map(({ id }) => id))
  t.same(sorted(idsOf(receiver)), ids, 'each one came once')
  for (const base of bases) {
    const { text } = await request(`${base}/metrics`)
    const line =
      /gatehouse_hooks_destination_attempts_total\{destination="shared",outcome="delivered"\} (\d+)/
    t.ok(Number(line.exec(text)?.[1]) > 0, 'each instance has sent some')
  }
  await destination(env, 'remove', 'shared')

  await t.test(
    'a result does not count when another has claimed the delivery since',
    async (t) => {
      const requests: (() => void)[] = []
      const late = await startReceiver(t, (_, response) => {
        requests.push(() => void response.writeHead(204).end())
      })
      await addDestination(env, 'late', late.url)
      await sendAll(t, [base], await sender.deliveries(1))
      await until(() => requests.length === 1, 'the first request')
      const claim = `update hooks.destination_deliveries set claimed_until = now() + interval '1 s'
                    where destination = 'late'`
      await backend.query(env, claim)
      requests[0]?.()
      await until(
        () => requests.length === 2,
        'the delivery to be due again when that claim lapses',
      )
      requests[1]?.()
      await untilListed(env, 'late', { delivered: 1, waiting: 0 })
      await destination(env, 'remove', 'late')
    },
  )

  await t.test('a rate is one bound for all', async (t) => {
    const [free, slow] = [await startReceiver(t), await startReceiver(t)]
    await addDestination(env, 'free', free.url)
    await addDestination(env, 'slow', slow.url, '--rate', '20/s')
    await destination(env, 'disable', 'slow')
    await sendAll(t, bases, await sender.deliveries(60))
    await untilListed(env, 'free', { delivered: 60 })

    // As if the clock had been set back by an hour: rate is used up to a later time than now.
    const [begin] = await backend.query(
      env,
      `with stepped as (
         update hooks.destinations set paid_until = now() + interval '1 hour' where rate = 20
       )
       select now()::text as at`,
    )
    await destination(env, 'enable', 'slow')
    await untilListed(env, 'slow', { delivered: 60 })
    // Of the 3 s that 60 take, a tenth of a second was left at the start.
    const [paid] = await backend.query(
      env,
      `select paid_until - $1::timestamptz >= interval '2.9 s' as fully
         from hooks.destinations where rate = 20`,
      [String(begin?.['at'])],
    )
    t.same(paid, { fully: true }, 'each delivery uses the rate, whoever sends it')
  })
})

await onPostgres(t, 'the page of destinations', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend, LOCAL)
  await addProvider(base, 'lan', { open: true })
  let status = 410
  const receiver = await startReceiver(t, (_, response) => void response.writeHead(status).end())
  const url = `${receiver.url}/in?token=geheim`
  const card = async () => {
    const { status: found, text } = await request(`${base}/destinations/erp`)
    t.notMatch(text, 'geheim')
    return found === 200 ? shownIn(text).facts : undefined
  }
  const send = (fields: Readonly<Record<string, string>>, path = '') =>
    postForm(base, `/destinations${path}`, fields)
  t.match((await request(`${base}/destinations`)).text, 'No destinations yet.')

  await t.test('what is refused', async (t) => {
    const good = { name: 'erp', url }
    const rows: readonly Refusal[] = [
      [form({ ...good, name: 'E r p' }), 422, undefined, /^name must be 1 to 64 of/],
      [form({ url, provider: 'all' }), 422, undefined, /^There is no provider "all"; see/],
      [form({ ...good, url: 'ftp://x/' }), 422, undefined, /^url must be an http:/],
      [form({ ...good, url: 'http://[::1]/' }), 422, undefined, /is not on the public internet/],
      [form({ ...good, json: 'a' }), 422, undefined, /^json must be path=value/],
      [form({ ...good, rate: '0' }), 422, undefined, /^rate must be a number of deliveries/],
      ...['', '1', 'on'].map((enabled): Refusal => {
        return [form({ enabled }, '/erp/enabled'), 422, undefined, /enabled must be true or false/]
      }),
      [form({ enabled: 'true' }, '/none/enabled'), 404],
      [form({}, '/none/retry'), 404],
      [form({}, '/none/remove'), 404],
    ]
    await refuseAll(t, { service: 'hooks', base, state: card }, rows)
    const page = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
    const again = await postForm(base, '/destinations', { ...good, rate: 'x' }, page)
    t.equal(again.status, 422)
    t.match(again.text, /value="erp"/, 'what was typed stays')
  })

  await t.test('a destination is added, retried, switched and removed', async (t) => {
    const added = await send({ name: 'erp', url, provider: 'generic:lan', rate: '50/s' })
    t.match(added, { status: 303, headers: { location: '/destinations/erp?done=added&of=erp' } })
    await post(base, 'generic/lan', '{}')
    await until(async () => (await card())?.['Dead'] === '1', 'the dead delivery')
    t.match(await card(), {
      URL: /token=«redacted»/,
      Events: /generic:lan/,
      Rate: 'at most 50 a second',
      Delivered: '0',
      Waiting: '0',
      'Last answer': /^410, /,
      Latency: /ms on average$/,
    })
    status = 204
    const { headers } = await send({ dead: 'true' }, '/erp/retry')
    t.match(headers, { 'gatehouse-done': 'Retried%201%20delivery.' })
    await until(async () => (await card())?.['Delivered'] === '1', 'the delivery')
    t.match((await send({ enabled: 'false' }, '/erp/enabled')).text, /aria-checked="false"/)
    t.match(await listed(env, 'erp'), { disabled_by: 'operator' })
    t.match((await send({ enabled: 'true' }, '/erp/enabled')).text, /aria-checked="true"/)
    const removed = await send({}, '/erp/remove')
    t.match(removed.headers, { 'gatehouse-done': 'Removed%20erp.' })
    t.equal(await card(), undefined)
  })

  await t.test('without a name it has that of its host', async (t) => {
    t.match(await send({ url }), {
      status: 303,
      headers: { location: /^\/destinations\/127-0-0-1-\d+\?/ },
    })
    const rows: readonly Refusal[] = [
      [form({ url }), 409, undefined, /^There is a destination "127-/],
    ]
    await refuseAll(t, { service: 'hooks', base, state: card }, rows)
  })
})

/** The names in the list of the page, from top to bottom. */
async function namesOnPage(base: string): Promise<readonly string[]> {
  const { text } = await request(`${base}/destinations`)
  return [...text.matchAll(/data-destination="([^"]+)"/g)].map(([, name = '']) => name)
}

await onPostgres(t, 'the list of destinations', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend, LOCAL)
  await addProvider(base, 'lan', { open: true })
  const receiver = await startReceiver(t, ({ path }, response) => {
    response.writeHead(path === '/dead' ? 410 : 204).end()
  })
  const paths = { a: '/in', b: '/dead', c: '/in', d: '/in' }
  for (const [name, path] of Object.entries(paths)) {
    await addDestination(env, name, receiver.url + path, '--provider', 'generic:lan')
  }
  await destination(env, 'disable', 'a')
  await post(base, 'generic/lan', '{}')
  await untilListed(env, 'b', { dead: 1, failing: true })
  await untilListed(env, 'c', { delivered: 1, failing: false })

  await t.test('those that fail come first, those that are disabled last', async (t) => {
    t.same(await namesOnPage(base), ['b', 'c', 'd', 'a'])
    const { text } = await request(`${base}/destinations`)
    t.match(text, /href="\/destinations\/b\?state=dead"/, 'a row opens what failed')
    t.match(await request(`${base}/destinations/b?state=dead`), { text: /data-delivery="1"/ })
  })

  await t.test('a provider that was removed since is named', async (t) => {
    await postForm(base, '/providers/generic%3Alan/remove', {})
    const { text } = await request(`${base}/destinations/c`)
    t.match(text, /no provider <bdi><code>generic:<wbr \/>lan/)
    t.match(text, /<option value="generic:lan" selected>generic:lan \(no such provider\)/)
    const { status } = await postForm(base, '/destinations/c', {
      ...{ url: receiver.url, provider: 'generic:lan' },
    })
    t.equal(status, 200, 'and stays: its events are still in the log')
  })
})

/** A form of the page, as `refuseAll` sends it. */
function form(fields: Readonly<Record<string, string>>, path = '') {
  const body = new URLSearchParams(fields).toString()
  return { call: `POST /destinations${path}`, headers: FORM_TYPE, body }
}

/** Owes deliveries of events that need not exist to a destination; every second one is dead. */
const OWE = `
insert into hooks.destination_deliveries (destination, event_id, tries, next_at)
select $1, id, 1, case when id % 2 = 0 then now() + interval '1 hour' end
  from generate_series(1000001, 1000000 + $2::integer) id`

await onPostgres(t, 'a destination with a large backlog', async (t: Test, backend) => {
  const { env, server } = await startHooks(t, backend, LOCAL)
  await addDestination(env, 'big', 'http://127.0.0.1:9/')
  // Nobody but the commands works on it.
  await server.stop()
  await backend.query(env, OWE, ['big', 9_001])
  const retry = async (...flags: readonly string[]) =>
    (await destination(env, 'retry', 'big', ...flags)).stderr

  await t.test('is retried in steps, each delivery once', async (t) => {
    t.match(await retry('--since', '1009000'), /^1 delivery is tried again/)
    t.match(await retry(), /^4499 deliveries are tried again/)
    t.match(await retry('--dead', '--since', '1000002'), /^4500 deliveries are tried again/)
    t.match(await retry('--dead'), /^1 delivery is tried again/)
    t.match(await listed(env, 'big'), { waiting: 9_001, dead: 0 })
  })

  await t.test('is removed in steps, and nobody sees it meanwhile', async (t) => {
    t.match(await destination(env, 'remove', 'big'), { code: 0, stderr: 'big is removed\n' })
    t.equal((await destination(env, 'list', '--json')).stdout, '[]\n')
    const add = () => destination(env, 'add', 'big', 'http://127.0.0.1:9/')
    const taken = 'The destination "big" is still being removed; choose another name or wait.'
    t.match(await add(), { code: 1, stderr: `gatehouse: ${taken}\n` })
    for (const verb of ['enable', 'disable', 'retry', 'remove']) {
      t.match((await destination(env, verb, 'big')).stderr, /There is no destination "big"/, verb)
    }
    await startServer(t, { services: ['hooks'], env })
    await until(async () => (await add()).code === 0, 'the name to be free')
    t.match(await listed(env, 'big'), { waiting: 0, dead: 0 }, 'it owes nothing')
  })
})

await onPostgres(t, 'a removal that a crash has cut off', async (t: Test, backend) => {
  const { env, server } = await startHooks(t, backend, LOCAL)
  await addDestination(env, 'big', 'http://127.0.0.1:9/')
  await server.stop()
  await backend.query(env, OWE, ['big', 5_000])
  await backend.query(
    env,
    `update hooks.destinations set disabled_at = now(), disabled_by = 'removal'`,
  )
  const again = await startServer(t, { services: ['hooks'], env })
  const add = () => destination(env, 'add', 'big', 'http://127.0.0.1:9/')
  await until(async () => (await add()).code === 0, 'the name to be free')
  await again.stop()
  const rest = await backend.query(env, 'select event_id from hooks.destination_deliveries')
  t.same(rest, [], 'nothing is left of its backlog')
})

await onPostgres(t, 'receivers that hang', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend, LOCAL)
  await addProvider(base, 'lan', { open: true })
  const hanging = await startReceiver(t, () => undefined)
  const healthy = await startReceiver(t)
  await addDestination(env, 'healthy', healthy.url)
  await backend.query(
    env,
    `insert into hooks.destinations
            (name, url, providers, event_types, members, ordered, timeout_s, position)
     select 'hung-' || n, $1, '[]', '[]', '[]', false, 30, 0 from generate_series(1, 40) n`,
    [hanging.url],
  )
  // 2 MiB: a share of 64 MiB among 41 destinations is less, and far less than the 4 MiB of one alone.
  const body = JSON.stringify({ padding: 'x'.repeat(512 * 1024) })
  for (let n = 0; n < 8; n++) await post(base, 'generic/lan', body)
  await until(() => hanging.received.length >= 40 * 4, 'each to use its share', 25_000)
  await untilListed(env, 'healthy', { delivered: 8, waiting: 0 })
  const claimed = `select count(*)::int as rows from hooks.destination_deliveries
                    where claimed_until is not null and destination like 'hung-%'`
  t.same(await backend.query(env, claimed), [{ rows: 160 }], 'each has its share, and no more')
})

await onPostgres(t, 'destination: what is refused', async (t: Test, backend) => {
  const { env } = await startHooks(t, backend, { HOOKS_REPLAY_TARGETS: '127.0.0.1:9' })
  await addDestination(env, 'known', 'http://127.0.0.1:9/')
  const add = (...words: readonly string[]) => ['destination', 'add', ...words]
  const url = 'http://127.0.0.1:9/'
  const notPublic = /The host of the URL is not on the public internet; list it in HOOKS_REPLAY_T/
  await refuseCommands(t, { env, state: () => listed(env, 'known') }, [
    [add('known', url), 1, /There is a destination "known" already/],
    [add('inside', 'http://127.0.0.1:10/'), 1, notPublic],
    [add('inside', 'http://localhost:9/'), 1, notPublic],
    [add('inside', 'http://[::1]/'), 1, notPublic],
    [add('inside', 'https://169.254.169.254/latest'), 1, notPublic],
    [add('x', 'ftp://example.com/'), 2, /^gatehouse: URL must be an http:/],
    [add('x', 'https://user:pw@example.com/'), 2, /^gatehouse: URL must be an http:/],
    [add('X Y', url), 2, /^gatehouse: NAME must be 1 to 64 of a-z/],
    [add('x', url, '--rate', '0/s'), 2, /^gatehouse: --rate must be a number of deliv/],
    [add('x', url, '--rate', '5/m'), 2, /^gatehouse: --rate must be a number of deliv/],
    [add('x', url, '--json-member', 'a'), 2, /^gatehouse: --json-member must be path=value/],
    [add('x'), 2, /^gatehouse: Missing URL/],
    [['destination', 'enable', 'none'], 1, /There is no destination "none"/],
    [['destination', 'disable', 'none'], 1, /There is no destination "none"/],
    [['destination', 'remove', 'none'], 1, /There is no destination "none"/],
    [['destination', 'retry', 'none'], 1, /There is no destination "none"/],
    [['destination', 'retry', 'known', '--since', 'x'], 2, /--since must be an event id/],
  ])
  const { stdout } = await destination(env, 'list', '--json')
  t.same(
    (JSON.parse(stdout) as readonly { name: string }[]).map(({ name }) => name),
    ['known'],
  )
  await until(async () => (await listed(env, 'known')).delivered === 0, 'nothing to be sent')
})
