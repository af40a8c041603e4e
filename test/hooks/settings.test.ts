import { t } from 'tap'
import type { Test } from 'tap'
import { openPeer } from '../fixtures/forward-setup.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import type { Response } from '../helpers/http.ts'
import { refuseAll } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'
import { startServer } from '../helpers/server.ts'
import { FORM_TYPE, addProvider, post, postForm, shownIn, startHooks } from '../helpers/hooks.ts'
import type { Ack, Shown } from '../helpers/hooks.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

const DEFAULTS = {
  retention_max_age_days: '30',
  retention_max_rows: '50000',
  sse_retry_ms: '3000',
  replay_default_target: '',
}
const OTHER = {
  retention_max_age_days: '7',
  retention_max_rows: '1000',
  sse_retry_ms: '500',
  replay_default_target: 'https://example.com/hook?a=1&b=2',
}
const STORED =
  'select retention_max_age_days, retention_max_rows, sse_retry_ms, replay_default_target from hooks.settings'

await onPostgres(t, 'settings', async (t: Test, backend) => {
  const { base, server, env } = await startHooks(t, backend)
  const save = (fields: Readonly<Record<string, string>>): ReturnType<typeof postForm> =>
    postForm(base, '/settings', fields)

  await t.test('defaults, and all fields changed', async (t) => {
    t.same(await settingsOf(base), DEFAULTS)
    const saved = await save(OTHER)
    t.match(saved, { status: 200, headers: { 'content-type': /^text\/html/ } })
    t.notMatch(saved.text, /<!doctype/i, 'the form alone')
    t.same(valuesIn(saved.text), OTHER, 'with the new values')
    t.same(await settingsOf(base), OTHER)
    const stream = await openStream(t, `${base}/events`)
    await until(() => stream.retry === 500, 'the stream to advertise the new delay')
  })

  await t.test('the smallest values, absent fields, an empty target', async (t) => {
    const least = { retention_max_age_days: '0', retention_max_rows: '0', sse_retry_ms: '250' }
    t.equal((await save(least)).status, 200)
    t.same(await settingsOf(base), { ...OTHER, ...least }, 'an absent field keeps its value')
    t.equal((await save({ replay_default_target: '' })).status, 200)
    t.same(await settingsOf(base), { ...OTHER, ...least, replay_default_target: '' })
    t.equal((await save({})).status, 200)
    t.equal((await save({ unknown_field: 'x' })).status, 200)
    t.same(await settingsOf(base), { ...OTHER, ...least, replay_default_target: '' })
    const { text } = await request(`${base}/settings`)
    t.match(text, /no limit/, 'the page says what 0 means')
    t.equal((await save(OTHER)).status, 200)
  })

  await t.test('changes of different fields at once are all kept', async (t) => {
    for (let round = 1; round <= 3; round++) {
      const changes = {
        retention_max_age_days: String(7 + round),
        retention_max_rows: String(1_000 + round),
        sse_retry_ms: String(500 + round),
        replay_default_target: `https://example.com/${round}`,
      }
      await Promise.all(Object.entries(changes).map(([name, value]) => save({ [name]: value })))
      t.same(await settingsOf(base), changes, `round ${round}`)
    }
    t.equal((await save(OTHER)).status, 200)
  })

  await t.test('an invalid value is refused, and nothing is taken then', async (t: Test) => {
    const bad: Readonly<Record<string, readonly string[]>> = {
      retention_max_age_days: [
        '-1',
        '1.5',
        'x',
        '',
        '36501',
        '99999999999999999999',
        '1e2',
        '0x1',
      ],
      retention_max_rows: ['-1', '0.5', 'many', '', '2147483648', '9007199254740993'],
      sse_retry_ms: ['249', '0', '-250', '250.5', '', 'Infinity', '3600001'],
      replay_default_target: [
        'nonsense',
        'example.com/hook',
        'ftp://example.com/',
        'javascript:alert(1)',
        'https://user:pass@example.com/',
        'https://',
        'https://example.com/\0',
        'https://example.com/\nb',
        `https://example.com/${'a'.repeat(2_100)}`,
      ],
    }
    const rows = Object.entries(bad).flatMap(([field, values]) =>
      values.map((value): Refusal => {
        const body = new URLSearchParams({ ...DEFAULTS, [field]: value }).toString()
        const call = { call: 'POST /settings', headers: FORM_TYPE, body }
        return [call, 422, undefined, new RegExp(`^${field} must be `)]
      }),
    )
    await refuseAll(t, { service: 'hooks', base, state: () => settingsOf(base) }, rows)
    t.same(await settingsOf(base), OTHER)
  })

  await t.test('a body that is no form, or too large', async (t: Test) => {
    const sent = (body: string, type: string) => ({
      call: 'POST /settings',
      headers: { 'content-type': type },
      body,
    })
    const large = `sse_retry_ms=9999&x=${'x'.repeat(70_000)}`
    await refuseAll(t, { service: 'hooks', base, state: () => settingsOf(base) }, [
      [sent('{}', 'application/json'), 415],
      [sent('{}', 'text/plain'), 415],
      [sent('{}', 'multipart/form-data; boundary=x'), 415],
      [sent(large, FORM_TYPE['Content-Type']), 413],
    ])
    const untyped = await request(`${base}/settings`, { method: 'POST', body: 'a=b' })
    t.equal(untyped.status, 415)
    const pieces = [large.slice(0, 40_000), large.slice(40_000)]
    const options = { method: 'POST', headers: FORM_TYPE, body: pieces }
    t.equal((await request(`${base}/settings`, options)).status, 413, 'chunked')
    t.same(await settingsOf(base), OTHER)
  })

  await t.test('without script: the page, or the refusal on the whole page', async (t) => {
    const navigates = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
    const saved = await postForm(base, '/settings', { sse_retry_ms: '600' }, navigates)
    t.match(saved, { status: 303, headers: { location: '/settings?done=saved' } })
    const page = await request(`${base}/settings?done=saved`)
    t.match(page.text, /role="status"[^>]*>Saved\./)
    t.equal(valuesIn(page.text)['sse_retry_ms'], '600')
    const refused = await postForm(base, '/settings', { sse_retry_ms: '1' }, navigates)
    t.match(refused, {
      status: 422,
      headers: { 'content-type': /^text\/html/ },
      text: /<!doctype/i,
    })
    t.match(refused.text, 'Reconnect after must be')
    t.equal((await settingsOf(base))['sse_retry_ms'], '600')
    t.equal((await save({ sse_retry_ms: '500' })).status, 200)
  })

  await t.test('they outlast the process', async (t) => {
    await server.stop()
    t.match(await backend.query(env, STORED), [
      {
        retention_max_age_days: 7,
        retention_max_rows: 1000,
        sse_retry_ms: 500,
        replay_default_target: OTHER.replay_default_target,
      },
    ])
    const next = await startServer(t, { services: ['hooks'], env })
    t.same(await settingsOf(next.hooks), OTHER)
    t.equal((await postForm(next.hooks, '/settings', { replay_default_target: ' ' })).status, 200)
    await next.stop()
    const [row] = await backend.query(env, STORED)
    t.equal(row?.['replay_default_target'], null, 'an empty target is none')
  })
})

t.test('a second instance hears of a change', async (t) => {
  const [, postgres] = backends
  const { base, env } = await startHooks(t, postgres)
  const other = await startServer(t, { services: ['hooks'], env })
  t.equal((await postForm(base, '/settings', { sse_retry_ms: '750' })).status, 200)
  t.equal((await settingsOf(other.hooks))['sse_retry_ms'], '750', 'its page')
  await until(async () => {
    const stream = await openStream(t, `${other.hooks}/events`)
    await stream.until(({ event }) => event === 'status')
    stream.close()
    return stream.retry === 750
  }, 'its stream to advertise the new delay')
})

const TARGET = 'http://localhost:3000/hook'
const NAME = 'ada@desk http://localhost:3000/a/b?c="d"&e'

/** The cards of forwarders in a page or fragment, by name. */
function cardsIn(text: string): Readonly<Record<string, Shown['facts']>> {
  const start = text.indexOf('id="forwarders"')
  const part = text.slice(start, text.indexOf('</section>', start))
  const cards = part.split('<article').slice(1)
  return Object.fromEntries(cards.map((card) => [nameIn(card), shownIn(card).facts]))
}

function nameIn(card: string): string {
  return (/<bdi>(.*?)<\/bdi>/s.exec(card)?.[1] ?? '').replaceAll('<wbr />', '')
}

function forget(
  base: string,
  name: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return postForm(base, `/settings/forwarders/${encodeURIComponent(name)}/forget`, {}, headers)
}

await onPostgres(t, 'forwarders on the settings page', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend)
  const cards = async () => cardsIn((await request(`${base}/settings`)).text)
  t.match((await request(`${base}/settings`)).text, 'No forwarder has connected yet')

  await addProvider(base, 'lan', { open: true })
  const ids: number[] = []
  for (let n = 0; n < 3; n++) {
    ids.push((await post(base, 'generic/lan', '{}')).json<Ack>().id)
  }
  const [first = 0, , last = 0] = ids
  const old = await openPeer(t, base, { name: 'old', target: TARGET, since: String(first + 1) })
  const peer = await openPeer(t, base, { name: NAME, target: TARGET })
  await old.next()
  await peer.next()
  const escaped = NAME.replaceAll('&', '&amp;').replaceAll('"', '&quot;')

  await t.test('each with its place and whether it is connected', async (t) => {
    const shown = await cards()
    t.same(Object.keys(shown), [escaped, 'old'], 'by name')
    t.match(shown['old'], {
      State: 'connected',
      'Done up to': `event ${first}`,
      'Newer events': '2',
    })
    t.match(shown[escaped], { 'Done up to': `event ${last}`, 'Newer events': '0' })
    await post(base, 'generic/lan', '{}')
    t.equal((await cards())[escaped]?.['Newer events'], '1')
  })

  await t.test('one that is connected is not forgotten', async (t) => {
    const refused = await forget(base, 'old')
    t.equal(refused.status, 409)
    t.match(refused.json(), { status: 409, detail: /is connected; stop it first/ })
    t.ok((await cards())['old'])
  })

  await t.test('one that is away is', async (t) => {
    peer.close()
    await until(async () => (await cards())[escaped]?.['State'] === 'away', 'it to be away')
    const gone = await forget(base, NAME)
    t.equal(gone.status, 200)
    t.notMatch(gone.text, /<!doctype/i, 'the list alone')
    t.same(Object.keys(cardsIn(gone.text)), ['old'])
    t.same(Object.keys(await cards()), ['old'])
    const again = await forget(base, NAME)
    t.equal(again.status, 404)
    t.match(again.json(), { detail: 'There is no forwarder under this name.' })
    const ready = await openPeer(t, base, { name: NAME, target: TARGET })
    t.match(await ready.next(), { known: false }, 'its name is new')
  })

  await t.test('without script the answer is the page', async (t) => {
    old.close()
    await until(async () => (await cards())['old']?.['State'] === 'away', 'it to be away')
    const page = await forget(base, 'old', { 'Sec-Fetch-Mode': 'navigate' })
    t.match(page, { status: 303, headers: { location: '/settings' } })
    t.same(Object.keys(await cards()), [escaped])
  })

  await t.test('waiting events are counted to 1,000', async (t) => {
    const far = await openPeer(t, base, { name: 'far', target: TARGET, since: '1' })
    await far.next()
    await backend.query(
      env,
      `insert into hooks.events (provider, trust, headers, payload, received_at)
       select 'code_host', 1, '[]', '', now()
         from generate_series(1, 1200)`,
    )
    t.equal((await cards())['far']?.['Newer events'], '1000 or more')
  })
})

/** The form's values on the settings page. */
async function settingsOf(base: string): Promise<Readonly<Record<string, string>>> {
  const { status, text } = await request(`${base}/settings`)
  if (status !== 200) throw new Error(`GET /settings answered ${status}, expected 200`)
  return valuesIn(text)
}

function valuesIn(text: string): Readonly<Record<string, string>> {
  const fields = Object.keys(DEFAULTS).map((name) => {
    const input = new RegExp(`<input[^>]*\\sname="${name}"[^>]*>`).exec(text)?.[0] ?? ''
    const value = /\svalue="([^"]*)"/.exec(input)?.[1] ?? 'no such field'
    return [name, value.replaceAll('&amp;', '&')] as const
  })
  return Object.fromEntries(fields)
}
