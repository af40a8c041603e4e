import { t } from 'tap'
import type { Test } from 'tap'
import { openForward, recorded, startForward } from '../fixtures/forward-setup.ts'
import { backends } from '../helpers/backends.ts'
import { freePort } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import type { Receiver } from '../helpers/replays.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { addProvider, post, startHooks } from '../helpers/hooks.ts'
import type { Ack } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

async function send(base: string, body = '{}', type = 'note'): Promise<number> {
  const answer = await post(base, 'generic/lan', body, { 'X-Event-Type': type })
  return answer.json<Ack>().id
}

function idsAt({ received }: Receiver): readonly number[] {
  return received.map(({ headers }) => Number(headers['x-gatehouse-event']))
}

/** A target that answers with these statuses, one after the other, and then with 200. */
function startTarget(t: Test, ...statuses: readonly number[]): Promise<Receiver> {
  const left = [...statuses]
  return startReceiver(t, (_, response) => {
    response.writeHead(left.shift() ?? 200, { Location: '/elsewhere' }).end('answered')
  })
}

t.test('forwarding to a target', async (t: Test) => {
  const { base, env } = await startHooks(t, postgres)
  await addProvider(base, 'lan', { open: true })
  const forward = (target: string, ...args: readonly string[]) =>
    openForward(t, [target, '--from', base, ...args])

  await t.test('a line an event', async (t) => {
    const target = await startTarget(t)
    const token = keepSecret('target-token', 'target-token-4711')
    const forwarder = forward(`${target.url}/hook?token=${token}&a=b`)
    await forwarder.connected()
    const id = await send(base, '{"a":"é"}')
    await until(() => forwarder.lines().length > 0, 'a line')
    t.match(forwarder.lines(), [new RegExp(`^${id}  generic:lan  note  10 B  200  \\d+ ms$`)])
    t.match(target.received, [{ method: 'POST', path: `/hook?token=${token}&a=b` }])
    const [attempt] = await recorded(base, id)
    t.match(attempt, { outcome: 'delivered', answer: /200/, kind: /forward/i })
    t.match(attempt?.target, `${target.url}/hook?token=`)
    t.same(await forwarder.stop(), { code: 0, signal: null })
    t.match(forwarder.said(), /^connected as ".+ 127\.0\.0\.1:\d+\/hook", after event \d+\n$/)
  })

  await t.test('lines of JSON, and only what is wanted', async (t) => {
    const target = await startTarget(t)
    const kind = ['--provider', 'generic:lan', '--event-type', 'wanted']
    const forwarder = forward(target.url, '--json', ...kind)
    await forwarder.connected()
    await send(base, '{}', 'other')
    const id = await send(base, '{"b":1}', 'wanted')
    await until(() => forwarder.lines().length > 0, 'a line')
    const told: unknown = JSON.parse(forwarder.lines()[0] ?? '')
    t.match(told, {
      ...{ id, provider: 'generic:lan', event_type: 'wanted', payload_size: 7, status: 200 },
      ...{ attempts: 1, delivered: true, received_at: /^20.*Z$/, ms: Number },
    })
    await forwarder.stop()
    const unknown = forward(target.url, '--provider', 'stripe', '--name', 'typo')
    await until(() => unknown.said().includes('there is no provider "stripe" yet'), 'the warning')
  })

  await t.test('a failed event is tried again before the next one', async (t) => {
    const target = await startTarget(t, 500, 302)
    const forwarder = forward(target.url)
    await forwarder.connected()
    const [first, second] = [await send(base), await send(base)]
    await until(() => forwarder.lines().length === 2, 'both events')
    t.same(idsAt(target), [first, first, first, second])
    t.match(forwarder.said(), new RegExp(`^event ${first}: status 500; again in \\d+ ms$`, 'm'))
    t.match(forwarder.said(), /: status 302 redirects are not followed; again in/)
    const outcomes = (await recorded(base, first, 3)).map(({ outcome }) => outcome)
    t.same(outcomes, ['delivered', 'failed', 'failed'])
    await forwarder.stop()
  })

  await t.test('a target that is not there yet', async (t) => {
    const port = await freePort()
    const forwarder = forward(`http://127.0.0.1:${port}/`)
    await forwarder.connected()
    const id = await send(base)
    await until(() => forwarder.said().includes('ECONNREFUSED'), 'the failure to be said')
    const known = (await recorded(base, id)).at(-1)
    t.match(known, { outcome: 'failed', detail: /ECONNREFUSED/ })
    t.same(forwarder.lines(), [])
    await forwarder.stop()
  })

  await t.test('retries that are used up end it; the event is not lost', async (t) => {
    const target = await startTarget(t, 500, 500)
    const args: [string, ...string[]] = [target.url, '--name', 'patient']
    const forwarder = forward(...args, '--retries', '1')
    await forwarder.connected()
    const id = await send(base)
    t.same(await forwarder.exited, { code: 1, signal: null })
    t.match(forwarder.said(), new RegExp(`: gave event ${id} up after 2 attempts\n$`))
    t.same(forwarder.lines(), [])
    const again = forward(...args)
    await until(() => again.lines().length === 1, 'the event')
    t.same(idsAt(target), [id, id, id])
    t.equal((await recorded(base, id, 3)).length, 3)
    await again.stop()
  })

  await t.test('--skip-failed leaves it out', async (t) => {
    const target = await startTarget(t, 500, 503)
    const forwarder = forward(target.url, '--skip-failed', '--retries', '1', '--json')
    await forwarder.connected()
    const [first, second] = [await send(base), await send(base)]
    await until(() => forwarder.lines().length === 2, 'both events')
    const told = forwarder.lines().map((line) => JSON.parse(line) as unknown)
    t.match(told, [
      { id: first, status: 503, attempts: 2, delivered: false },
      { id: second, status: 200, attempts: 1, delivered: true },
    ])
    t.match(forwarder.said(), new RegExp(`^event ${first}: status 503; left out$`, 'm'))
    t.same(await forwarder.stop(), { code: 0, signal: null })
  })

  await t.test('--since counts for a new name', async (t) => {
    const target = await startTarget(t)
    const first = await send(base)
    const args: [string, ...string[]] = [target.url, '--name', 'back', '--since', String(first)]
    const forwarder = forward(...args)
    await until(() => forwarder.lines().length === 1, 'the old event')
    await forwarder.stop()
    const second = await send(base)
    const again = forward(...args)
    await until(() => again.lines().length === 1, 'the new event')
    t.same(idsAt(target), [first, second])
    t.match(again.said(), /--since counts for a new name only/)
    await again.stop()
  })

  await t.test('Ctrl-C during a delivery: it is finished and recorded', async (t) => {
    let answer = (): void => undefined
    const target = await startReceiver(t, (_, response) => {
      answer = () => response.writeHead(200).end()
    })
    const args: [string, ...string[]] = [target.url, '--name', 'slow']
    const forwarder = startForward(t, [...args, '--from', base])
    await forwarder.connected()
    const [first, second] = [await send(base), await send(base)]
    await until(() => target.received.length === 1, 'the delivery')
    process.kill(forwarder.pid, 'SIGINT')
    await until(async () => (await send(base, '{}', 'later')) > 0, 'another event')
    answer()
    t.same(await forwarder.exited, { code: 0, signal: null })
    t.match(forwarder.lines(), [new RegExp(`^${first}  `)])
    t.match(await recorded(base, first), [{ outcome: 'delivered' }])

    const again = forward(...args)
    await until(() => target.received.length === 2, 'the next event')
    t.same(idsAt(target), [first, second], 'it does not come again')
    t.same(await again.stop(), { code: 0, signal: null }, 'a target that hangs has five seconds')
    const [hung] = await recorded(base, second)
    t.match(hung, { outcome: 'failed', detail: /no answer within/ })
  })

  await t.test('a second signal ends it at once', async (t) => {
    const target = await startReceiver(t, () => undefined)
    const forwarder = startForward(t, [target.url, '--from', base])
    await forwarder.connected()
    await send(base)
    await until(() => target.received.length === 1, 'the delivery')
    process.kill(forwarder.pid, 'SIGINT')
    process.kill(forwarder.pid, 'SIGTERM')
    t.same(await forwarder.exited, { code: 1, signal: null })
  })

  const target = await startReceiver(t)
  const search = (...args: readonly string[]) => forward(target.url, ...args)
  const first = await send(base, '{"data":{"object":{"id":"evt_1"}}}')
  const since = ['--since', String(first)]
  const ids = (lines: readonly string[]): readonly number[] =>
    lines.map((line) => (JSON.parse(line) as { id: number }).id)

  await t.test('--text and --json-member choose, also what comes later', async (t) => {
    const byText = search('--text', 'evt_1', '--json', ...since)
    const byMember = search('--json-member', 'data.object.id=evt_1', '--json', ...since)
    await Promise.all([byText.connected(), byMember.connected()])
    await send(base, '{"data":{"object":{"id":"evt_2"}}}')
    const longer = await send(base, '{"data":{"object":{"id":"evt_12"}}}')
    const last = await send(base, '{"data":{"object":{"id":"evt_1"}},"n":2}')
    await until(() => byText.lines().length === 3, 'the events with the text')
    await until(() => byMember.lines().length === 2, 'the events with the member')
    t.same(ids(byText.lines()), [first, longer, last])
    t.same(ids(byMember.lines()), [first, last])
    t.match(byText.said(), /^connected as ".+ 127\.0\.0\.1:\d+\/ text=evt_1", after/)
    t.match(byMember.said(), /^connected as ".+ json=data\.object\.id=evt_1", after/)
  })

  await t.test('searches that differ anywhere are forwarders of their own', async (t) => {
    const long = 'x'.repeat(400)
    const searches = [`${long}1`, `${long}2`, 'a\nb', 'a\tb', 'ab']
    const forwarders = searches.map((text) => search('--text', text))
    for (const forwarder of forwarders) await forwarder.connected()
    const rows = await postgres.query(env, 'select name, connection from hooks.forwarders')
    const searching = rows.filter(({ name }) => / text=(x|ab)/.test(String(name)))
    t.equal(searching.length, searches.length)
    t.ok(searching.every(({ connection }) => Number(connection) === 1))
    await forwarders[0]?.stop()
    await search('--text', searches[0] ?? '').connected()
    const [again] = await postgres.query(
      env,
      `select count(*)::int as count from hooks.forwarders
        where connection = 2 and name like '% text=x%'`,
    )
    t.match(again, { count: 1 }, 'and the same one has the same name again')
  })
})
