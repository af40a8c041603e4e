import { t } from 'tap'
import type { Test } from 'tap'
import { openPeer } from '../fixtures/forward-setup.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import type { Response } from '../helpers/http.ts'
import { addProvider, post, postForm, shownIn, startHooks } from '../helpers/signing-setup.ts'
import type { Ack, Shown } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

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
  const { base } = await startHooks(t, backend)
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
    t.match(page, { status: 200, text: /<!doctype[\s\S]*Tool protocol[\s\S]*Configuration/i })
    t.same(Object.keys(cardsIn(page.text)), [escaped])
  })
})

t.test('waiting events are counted to 1,000', async (t) => {
  const [, postgres] = backends
  const { base, env } = await startHooks(t, postgres)
  const peer = await openPeer(t, base, { name: 'far', target: TARGET, since: '1' })
  await peer.next()
  await postgres.query(
    env,
    `insert into hooks.events (provider, trust_mode, verified, headers, payload, body_hash, received_at)
     select 'code_host', 'signed', true, '{}', '', sha256(''), now() from generate_series(1, 1200)`,
  )
  const { text } = await request(`${base}/settings`)
  t.equal(cardsIn(text)['far']?.['Newer events'], '1000 or more')
})

t.test('another site forgets nothing', async (t) => {
  const { base } = await startHooks(t, backends[0])
  const answer = await forget(base, 'x', { 'Sec-Fetch-Site': 'cross-site' })
  t.equal(answer.status, 403)
})
