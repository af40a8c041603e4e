import { t } from 'tap'
import { openPeer } from '../fixtures/forward-setup.ts'
import { postgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { expectStatus, refuseAll, type Refusal } from '../helpers/refusals.ts'
import { startServer } from '../helpers/server.ts'
import {
  FORM_TYPE,
  addProvider,
  formCall,
  postForm,
  shownIn,
  startHooks,
  store,
  type Shown,
  type Fields,
} from '../helpers/hooks.ts'
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
const { base, env } = await startHooks(t, postgres)
const { hooks: second } = await startServer(t, { services: ['hooks'], env })
const save = (fields: Fields) => postForm(base, '/settings', fields)

await t.test('settings', async (t) => {
  await t.test('defaults, and all fields changed', async (t) => {
    t.same(await settingsOf(base), DEFAULTS)
    await expectStatus(200, save(OTHER))
    t.same(await settingsOf(base), OTHER)
    const other = await openStream(t, `${second}/events`)
    await until(() => other.retry === 500, 'a stream of another instance to tell the new delay')
    t.same(await settingsOf(second), OTHER)
  })

  await t.test('the smallest values, absent fields, an empty target', async (t) => {
    const least = { retention_max_age_days: '0', retention_max_rows: '0', sse_retry_ms: '250' }
    await expectStatus(200, save(least))
    t.same(await settingsOf(base), { ...OTHER, ...least }, 'an absent field keeps its value')
    await expectStatus(200, save({ replay_default_target: ' ' }))
    t.equal((await settingsOf(base))['replay_default_target'], '')
    await expectStatus(200, save(OTHER))
  })

  await t.test('an invalid value is refused, and nothing is taken then', async (t) => {
    const bad: Readonly<Record<string, readonly string[]>> = {
      retention_max_age_days: ['-1', '1.5', '', '36501', '1e2'],
      retention_max_rows: ['-1', '2147483648'],
      sse_retry_ms: ['249', '3600001'],
      replay_default_target: ['ftp://example.com/', `https://example.com/${'a'.repeat(2_100)}`],
    }
    const rows = Object.entries(bad).flatMap(([field, values]) =>
      values.map((value): Refusal => {
        const call = formCall('/settings', { ...DEFAULTS, [field]: value })
        return [call, 422, new RegExp(`^${field} must be `)]
      }),
    )
    const sent = (body: string, type: string) => ({
      call: 'POST /settings',
      headers: { 'content-type': type },
      body,
    })
    const large = `sse_retry_ms=9999&x=${'x'.repeat(70_000)}`
    await refuseAll(t, { service: 'hooks', base, state: () => settingsOf(base) }, [
      ...rows,
      [sent('{}', 'multipart/form-data; boundary=x'), 415],
      [sent(large, FORM_TYPE['Content-Type']), 413],
    ])
  })

  await t.test('without script: the page, or the refusal on the whole page', async (t) => {
    const navigates = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
    const saved = await postForm(base, '/settings', { sse_retry_ms: '600' }, navigates)
    t.match(saved, { status: 303, headers: { location: '/settings?done=saved' } })
    const page = await request(`${base}/settings?done=saved`)
    t.match(page.text, /role="status"[^>]*>Saved\./)
    const refused = await postForm(base, '/settings', { sse_retry_ms: '1' }, navigates)
    t.match([refused.status, refused.text], [422, /<!doctype.*Reconnect after must be/is])
    t.equal((await settingsOf(base))['sse_retry_ms'], '600')
  })
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

function nameIn(card: string) {
  return (/<bdi>(.*?)<\/bdi>/s.exec(card)?.[1] ?? '').replaceAll('<wbr />', '')
}

function forget(base: string, name: string) {
  return postForm(base, `/settings/forwarders/${encodeURIComponent(name)}/forget`, {})
}

await t.test('forwarders on the settings page', async (t) => {
  const cards = async () => cardsIn((await request(`${base}/settings`)).text)
  t.match((await request(`${base}/settings`)).text, 'No forwarder has connected yet')

  await addProvider(base, 'lan', { open: true })
  const ids = [await store(base, 'lan'), await store(base, 'lan'), await store(base, 'lan')]
  const [first = 0] = ids
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
  })

  await t.test('one that is connected is not forgotten', async (t) => {
    const detail = /is connected; stop it first/
    t.match((await forget(base, 'old')).json(), { status: 409, detail })
  })

  await t.test('one that is away is', async (t) => {
    peer.close()
    await until(async () => (await cards())[escaped]?.['State'] === 'away', 'it to be away')
    const gone = await forget(base, NAME)
    t.same(Object.keys(cardsIn(gone.text)), ['old'])
    await expectStatus(404, forget(base, NAME))
    const ready = await openPeer(t, base, { name: NAME, target: TARGET })
    t.match(await ready.next(), { known: false }, 'its name is new')
  })

  await t.test('waiting events are counted to 1,000', async (t) => {
    const far = await openPeer(t, base, { name: 'far', target: TARGET, since: '1' })
    await far.next()
    await postgres.query(
      env,
      `insert into hooks.events (provider, trust, headers, payload, received_at)
       select 'code_host', 1, '[]', '', now()
         from generate_series(1, 1200)`,
    )
    t.equal((await cards())['far']?.['Newer events'], '1,000 or more')
  })
})

/** The form's values on the settings page. */
async function settingsOf(base: string) {
  const { status, text } = await request(`${base}/settings`)
  if (status !== 200) throw new Error(`GET /settings answered ${status}, expected 200`)
  return valuesIn(text)
}

function valuesIn(text: string) {
  const fields = Object.keys(DEFAULTS).map((name) => {
    const input = new RegExp(`<input[^>]*\\sname="${name}"[^>]*>`).exec(text)?.[0] ?? ''
    const value = /\svalue="([^"]*)"/.exec(input)?.[1] ?? 'no such field'
    return [name, value.replaceAll('&amp;', '&')] as const
  })
  return Object.fromEntries(fields)
}
