import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import type { Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { refuseCommands } from '../helpers/cli.ts'
import { addDestination, destination, listed, untilListed } from '../helpers/destinations.ts'
import { request } from '../helpers/http.ts'
import { addProvider, FORM_TYPE, post, postForm, startHooks, type Ack } from '../helpers/hooks.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

type Shown = Readonly<Record<string, unknown>> & { version: string }

await onPostgres(t, 'filters of a destination', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend, { HOOKS_REPLAY_TARGETS: '127.0.0.1' })
  const api = apiOf(base)
  for (const name of ['lan', 'wan', 'man']) await addProvider(base, name, { open: true })
  const receiver = await startReceiver(t)
  const send = async (provider: string, type: string, body = '{}') =>
    (await post(base, `generic/${provider}`, body, { 'X-Event-Type': type })).json<Ack>().id
  const got = (path: string) =>
    receiver.received
      .filter((one) => one.path === path)
      .map(({ headers }) => headers['x-event-type'])
      .toSorted()

  await t.test('several providers, types with * and members', async (t) => {
    const rows: readonly (readonly [string, Record<string, unknown>])[] = [
      ['providers', { providers: ['generic:lan', 'generic:wan'] }],
      ['one', { providers: ['generic:lan'], provider: 'generic:man' }],
      ['types', { event_types: ['Invoice.*', 'push'] }],
      ['type', { event_type: 'push' }],
      ['members', { json: ['a.b=1', 'c=x'] }],
      ['member', { json: 'c=x' }],
      ['all', { providers: 'generic:lan\ngeneric:man', event_types: ['*'], json: 'a.b=1' }],
    ]
    for (const [name, filters] of rows) {
      const made = await api('POST', '/destinations', {
        ...{ name, url: `${receiver.url}/${name}` },
        ...filters,
      })
      t.equal(made.status, 201, name)
    }
    t.match((await api<Shown>('GET', '/destinations/all')).json, {
      providers: ['generic:lan', 'generic:man'],
      event_types: ['*'],
      json: ['a.b=1'],
      timeout_s: 10,
    })
    await send('lan', 'invoice.paid', '{"a":{"b":1},"c":"x"}')
    await send('wan', 'push', '{"a":{"b":1}}')
    await send('man', 'Push', '{"c":"x"}')
    const expected = {
      providers: ['invoice.paid', 'push'],
      one: ['Push', 'invoice.paid'],
      types: ['invoice.paid', 'push'],
      type: ['push'],
      members: ['invoice.paid'],
      member: ['Push', 'invoice.paid'],
      all: ['invoice.paid'],
    }
    for (const [name, types] of Object.entries(expected)) {
      await untilListed(env, name, { delivered: types.length, waiting: 0 })
      t.same(got(`/${name}`), types.toSorted(), name)
      await destination(env, 'remove', name)
    }
  })

  await t.test('since: the events from one on, or from a time on', async (t) => {
    const first = await send('lan', 'one')
    await send('lan', 'two')
    const { stderr } = await destination(
      env,
      ...['add', 'late', `${receiver.url}/late`, '--since', String(first)],
    )
    t.equal(stderr, `late gets the events from ${first} on\n`)
    await untilListed(env, 'late', { delivered: 2 })
    const flags = [
      '--since',
      '2020-01-01',
      '--provider',
      'generic:man',
      '--provider',
      'generic:wan',
    ]
    await addDestination(env, 'old', `${receiver.url}/old`, ...flags)
    await untilListed(env, 'old', { delivered: 2 })
    t.same(got('/old'), ['Push', 'push'])
    // Back to the first event: all of them come again.
    t.match(await destination(env, 'set', 'late', '--since', String(first)), { code: 0 })
    await untilListed(env, 'late', { delivered: 4 })
    t.same(got('/late'), ['one', 'one', 'two', 'two'])
    for (const name of ['late', 'old']) await destination(env, 'remove', name)
  })

  await t.test('a mistaken address is mended, and what was owed to it is delivered', async (t) => {
    const wrong = await startReceiver(t, (_, response) => void response.writeHead(404).end())
    await addDestination(env, 'erp', `${wrong.url}/?token=geheim`, '--provider', 'generic:lan')
    await send('lan', 'one')
    await untilListed(env, 'erp', { waiting: 1, last_status: 404 })
    const { json: before, headers } = await api<Shown>('GET', '/destinations/erp')
    t.equal(headers['etag'], `"${before.version}"`)
    const url = `${receiver.url}/mended`
    const set = await api<Shown>(
      'PUT',
      '/destinations/erp',
      { url, event_types: ['two'] },
      {
        'If-Match': `"${before.version}"`,
      },
    )
    t.equal(set.status, 200)
    t.match(set.json, { name: 'erp', url, providers: [], event_types: ['two'] })
    t.not(set.json.version, before.version)
    t.equal(set.headers['etag'], `"${set.json.version}"`)
    await destination(env, 'retry', 'erp')
    await untilListed(env, 'erp', { waiting: 0, delivered: 1 })
    t.same(got('/mended'), ['one'], 'owed before the filter')
    await send('lan', 'one')
    await send('lan', 'two')
    await untilListed(env, 'erp', { waiting: 0, delivered: 2 })
    await destination(env, 'remove', 'erp')
  })
})

await onPostgres(t, 'changes of a destination', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend, { HOOKS_REPLAY_TARGETS: '127.0.0.1' })
  const api = apiOf(base)
  await addProvider(base, 'lan', { open: true })
  const url = 'http://127.0.0.1:9/in?token=geheim'
  await addDestination(env, 'erp', url, '--ordered', '--rate', '5/s', '--timeout', '30')
  const state = async (): Promise<unknown> => (await api('GET', '/destinations')).json

  await t.test('a command changes what its flags name, and keeps the rest', async (t) => {
    t.match(await destination(env, 'set', 'erp', '--event-type', 'a', '--event-type', 'b'), {
      code: 0,
      stderr: 'erp is changed\n',
    })
    t.match(await listed(env, 'erp'), {
      ...{ event_types: ['a', 'b'], ordered: true, rate: 5, timeout_s: 30 },
      url: 'http://127.0.0.1:9/in?token=«redacted»',
    })
    const [row] = await backend.query(env, 'select url from hooks.destinations')
    t.same(row, { url }, 'the token that is not shown stays')
    const off = ['--unordered', '--rate=', '--event-type=', '--timeout', '1']
    t.match(await destination(env, 'set', 'erp', ...off), { code: 0 })
    t.match(await listed(env, 'erp'), {
      event_types: [],
      ordered: false,
      rate: null,
      timeout_s: 1,
    })
  })

  await t.test('the page shows what is configured, and changes it', async (t) => {
    const { text } = await request(`${base}/destinations/erp`)
    t.notMatch(text, 'geheim')
    t.match(text, /value="http:\/\/127.0.0.1:9\/in\?token=«redacted»"/)
    const version = /name="version" value="([^"]+)"/.exec(text)?.[1] ?? ''
    const fields = { url: 'http://127.0.0.1:9/', providers: 'generic:lan\n', rate: '7' }
    const saved = await postForm(base, '/destinations/erp', { ...fields, version })
    t.match(saved, { status: 200, headers: { 'gatehouse-done': 'Saved.' } })
    t.match(await listed(env, 'erp'), { providers: ['generic:lan'], rate: 7, timeout_s: 10 })
    const page = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
    const again = await postForm(base, '/destinations/erp', { ...fields, version }, page)
    t.equal(again.status, 412)
    t.match(again.text, /was changed meanwhile/)
  })

  await t.test('what is refused', async (t) => {
    const { json } = await api<Shown>('GET', '/destinations/erp')
    const put = (body: unknown, headers = {}) => ({
      ...{ call: 'PUT /api/v1/destinations/erp', body, headers },
    })
    const add = (body: object) => ({
      call: 'POST /api/v1/destinations',
      body: { name: 'other', url: 'http://127.0.0.1:9/', ...body },
    })
    const form = (fields: Readonly<Record<string, string>>) => ({
      call: 'POST /destinations/erp',
      headers: FORM_TYPE,
      body: new URLSearchParams({ url, ...fields }).toString(),
    })
    const many = Array.from({ length: 21 }, (_, n) => `type-${n}`)
    const rows: readonly Refusal[] = [
      [put({ url }, { 'If-Match': '"other"' }), 412, undefined, /changed meanwhile/],
      [put({ url }, { 'If-Match': `W/"${json.version}"` }), 412],
      [put({ url, version: 'other' }), 412],
      [{ call: 'PUT /api/v1/destinations/none', body: { url } }, 404],
      ['GET /api/v1/destinations/none', 404],
      [put({}), 400, undefined, /^url must be/],
      [put({ url, name: 'new' }), 422, undefined, /^name is not known/],
      [put({ url: 'http://127.0.0.1:9/other?token=«redacted»' }), 422, undefined, /^url has «red/],
      [put({ url: 'http://10.0.0.1/' }), 422, undefined, /HOOKS_REPLAY_TARGETS/],
      [put({ url, providers: ['lan'] }), 422, undefined, /^There is no provider "lan"/],
      [put({ url, since: '999999' }), 422, undefined, /^since must not be after event 0/],
      [put({ url, since: 'soon' }), 400, undefined, /^since must be an event id/],
      [put({ url, timeout_s: 31 }), 400, undefined, /^timeout_s must be a whole number/],
      [put({ url, timeout_s: 0 }), 400],
      [put({ url, timeout_s: 1.5 }), 400],
      [put({ url, providers: { a: 1 } }), 400, undefined, /^providers must be a list of texts/],
      [put({ url, event_types: [1] }), 400, undefined, /^event_types must be a list/],
      [put({ url, event_types: many }), 400, undefined, /at most 20/],
      [put({ url, event_types: ['x'.repeat(501)] }), 400, undefined, /500 characters/],
      [put({ url, json: ['a=1', 'b'] }), 400, undefined, /^json must be path=value/],
      [add({ provider: 'none' }), 422, undefined, /^There is no provider "none"/],
      [add({ since: '2026-13-01' }), 400, undefined, /^since must be/],
      [form({ timeout_s: '99' }), 422, undefined, /^timeout_s must be/],
      [form({ providers: 'none' }), 422, undefined, /^There is no provider/],
    ]
    await refuseAll(t, { service: 'hooks', base, state }, rows)
    await refuseCommands(t, { env, state }, [
      [['destination', 'set', 'none', '--rate', '5'], 1, /There is no destination "none"/],
      [['destination', 'set', 'erp', '--provider', 'x'], 1, /There is no provider "x"/],
      [['destination', 'set', 'erp', '--timeout', '31'], 2, /--timeout must be a whole number/],
      [['destination', 'set', 'erp', '--url', 'x'], 2, /--url must be an http:/],
      [['destination', 'set', 'erp', '--since', 'x'], 2, /--since must be an event id/],
      [['destination', 'set', 'erp', '--json-member', 'x'], 2, /--json-member must be path=/],
      [['destination', 'set', 'erp', '--ordered', '--unordered'], 2, /exclude each other/],
    ])
  })

  await t.test('what is being sent when it is disabled is sent, and counts', async (t) => {
    // Slower than what the program waits for when it stops.
    const slow = await startReceiver(t, async (_, response) => {
      await pause(4_000)
      response.writeHead(204).end()
    })
    await addDestination(env, 'slow', slow.url)
    await post(base, 'generic/lan', '{}')
    await until(() => slow.received.length === 1, 'the event to be sent')
    await destination(env, 'disable', 'slow')
    await untilListed(env, 'slow', { delivered: 1, waiting: 0 })
    t.equal(slow.received.length, 1)
    await destination(env, 'remove', 'slow')
  })
})
