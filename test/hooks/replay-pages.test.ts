import { verify } from '@octokit/webhooks-methods'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import {
  SECRETS,
  addProvider,
  deliver,
  FORM_TYPE,
  post,
  postForm,
  startHooks,
  type Ack,
} from '../helpers/hooks.ts'
import { leadsTo, request } from '../helpers/http.ts'
import { refuseAll } from '../helpers/refusals.ts'
import { attemptsIn, startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

const receiver = await startReceiver(t, ({ path }, response) => {
  const body = /^\/answer\/(.*)/.exec(path)?.[1] ?? ''
  response.writeHead(200).end(decodeURIComponent(body))
})
const { base } = await startHooks(t, backends[1], {
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
})
await addProvider(base, 'shop', { open: true })
const OWN = { 'Sec-Fetch-Site': 'same-origin', Accept: 'text/html' }

async function send(type: string, body = '{}'): Promise<number> {
  return (await post(base, 'generic/shop', body, { 'X-Event-Type': type })).json<Ack>().id
}

async function pageOf(path: string): Promise<string> {
  const { status, text } = await request(base + path, { headers: OWN })
  if (status !== 200) throw new Error(`${path} answered ${status}`)
  return text
}

const first = await send('order.paid', '{"n":"<1>"}')
const last = await send('order.open')

await t.test('a filter of the log is counted, with bounds that stay', async (t: Test) => {
  const log = await pageOf('/log?event_type=order.paid&since=24h')
  t.match(log, '"/replays/new?event_type=order.paid&amp;since=24h"')
  const shown = await pageOf('/replays/new?event_type=order.paid&since=24h')
  t.match(shown, 'Replay 1 event')
  t.match(shown, `event ${first}; newer ones are not sent`)
  t.match(shown, /name="since" value="\d{4}-\d\d-\d\dT/, 'not a duration, which moves')
  t.match(await pageOf('/replays/new'), 'Replay 2 events')
  t.match(await pageOf(`/replays/new?json=${encodeURIComponent('n=<1>')}`), 'Replay 1 event')
  const none = await pageOf('/replays/new?event_type=nothing')
  t.match(none, 'No event matches these filters.')
  t.notMatch(none, 'name="target_url"')
})

await t.test('a job begins by its form, and is listed', async (t: Test) => {
  t.match(await pageOf('/replays'), 'No replays of many events.')
  const fields = {
    event_type: 'order.paid',
    highest_id: String(last),
    target_url: `${receiver.url}/in?token=hush`,
  }
  const body = new URLSearchParams(fields).toString()
  const headers = FORM_TYPE
  const started = await request(`${base}/replays`, { method: 'POST', headers, body })
  t.equal(started.status, 303)
  const path = leadsTo(started)
  const shown = await until(async () => {
    const text = await pageOf(path)
    return text.includes('data-state="finished"') && text
  }, 'the job to end')
  t.match(shown, 'Event type: ')
  t.notMatch(shown, 'hush')
  t.notMatch(shown, 'hx-trigger="every', 'what has ended is not asked for again')
  t.equal(receiver.received[0]?.headers['x-gatehouse-replay'], String(first))
  t.match(await pageOf('/replays'), new RegExp(`href="${path}"`))
  const again = await postForm(base, `${path}/cancel`, {})
  t.match(again, { status: 200, text: /data-state="finished"/ }, 'what has ended stays')
})

await t.test('what is refused', async (t: Test) => {
  const form = 'application/x-www-form-urlencoded'
  const fields = (text: string, headers = {}) => {
    return { call: 'POST /replays', body: text, headers: { 'content-type': form, ...headers } }
  }
  const target = `target_url=${encodeURIComponent(receiver.url)}`
  const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
  const state = async () => [receiver.received.length, (await pageOf('/replays')).length]
  await refuseAll(t, { service: 'hooks', base, state }, [
    [fields(`highest_id=${last}&${target}`, foreign), 403],
    [fields(target), 422, undefined, /highest_id/],
    [fields(`highest_id=0&${target}`), 422, undefined, /highest_id/],
    [fields(`highest_id=${last}`), 422, undefined, /no default target/],
    [fields(`highest_id=${last}&target_url=http%3A%2F%2F10.0.0.1`), 422, undefined, /not on the/],
    [fields(`highest_id=${last}&${target}&since=24h`), 422, undefined, /since must be/],
    // The time that a search takes shows whether a text is in a payload.
    ['GET /replays/new?text=secret', 403, undefined, /another site may not search/],
    ['GET /replays/new?json=x', 400, undefined, /json must be/],
    ['GET /replays/none', 404],
    [{ call: 'POST /replays/none/cancel', headers: { 'content-type': form } }, 404],
  ])
})

await t.test('an event is sent with another body, signed for it', async (t: Test) => {
  const id = (await deliver(base, 'code_host', '{"n":1}\n')).json<Ack>().id
  const form = await pageOf(`/log/${id}/edit`)
  t.match(form, '{&quot;n&quot;:1}')
  t.match(await pageOf(`/log/${id}`), `href="/log/${id}/edit"`)
  // A form sends line breaks as CRLF.
  const fields = {
    content_type: 'application/x-edited',
    payload: '{"n":2}\r\n',
    target_url: `${receiver.url}/edited`,
  }
  const { status, text } = await postForm(base, `/log/${id}/edit`, fields)
  t.equal(status, 200)
  t.match(attemptsIn(text), [{ outcome: 'delivered', kind: 'replay, edited' }])
  const got = receiver.received.at(-1)
  t.equal(String(got?.body), '{"n":2}\n')
  t.match(got?.headers, {
    'content-type': 'application/x-edited',
    'x-gatehouse-replay': String(id),
    'x-gatehouse-edited': 'true',
  })
  const signature = String(got?.headers['x-hub-signature-256'])
  t.ok(await verify(SECRETS.code_host, '{"n":2}\n', signature), 'signed anew')
  const stored = await request(`${base}/log/${id}/payload`)
  t.equal(stored.text, '{"n":1}\n', 'the stored event does not change')
  await postForm(base, `/log/${id}/edit`, { payload: '', target_url: `${receiver.url}/edited` })
  t.match(receiver.received.at(-1)?.headers, { 'content-length': '0' })
  t.equal(receiver.received.at(-1)?.headers['content-type'], undefined)
  await postForm(base, `/log/${id}/replay`, { target_url: `${receiver.url}/again` })
  t.equal(receiver.received.at(-1)?.headers['x-gatehouse-edited'], undefined)

  const binary = (await post(base, 'generic/shop', Buffer.from([0xff, 0]))).json<Ack>().id
  const long = (await post(base, 'generic/shop', 'x'.repeat(256 * 1024 + 1))).json<Ack>().id
  for (const other of [binary, long]) {
    t.match(await pageOf(`/log/${other}/edit`), 'Only text of at most 256 KB')
  }
  const call = { call: `POST /log/${id}/edit` }
  const wrong = (more: object, headers = {}) => ({
    ...call,
    body: new URLSearchParams({ ...fields, ...more }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  })
  const state = async () => [receiver.received.length, (await pageOf(`/log/${id}`)).length]
  await refuseAll(t, { service: 'hooks', base, state }, [
    [wrong({}, { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }), 403],
    [wrong({ content_type: 'ü' }), 422, undefined, /content_type must be/],
    [wrong({ payload: 'x'.repeat(256 * 1024 + 1) }), 422, undefined, /payload must be text of/],
    [wrong({ payload: 'x'.repeat(1_100_000) }), 413],
    [wrong({ target_url: '' }), 422, undefined, /no default target/],
    ['GET /log/999999/edit', 404],
    [{ ...wrong({}), call: 'POST /log/999999/edit' }, 404],
  ])
})

await t.test('two answers of an event are compared', async (t: Test) => {
  const id = await send('order.paid')
  const answer = (text: string) => `${receiver.url}/answer/${encodeURIComponent(text)}`
  const send2 = (text: string) => {
    return postForm(base, `/log/${id}/replay`, { target_url: answer(text) })
  }
  const one = await send2('{"ok":true,"n":"<1>"}')
  t.notMatch(one.text, 'Compare answers', 'there is one answer alone')
  await send2('{"ok":true,"n":2}')
  await send2('{"n":2,"ok":true}')
  const last = await send2('line 1')
  t.match(last.text, 'Compare answers')
  const ids = [...last.text.matchAll(/data-attempt="(\d+)"/g)].map(([, found]) => found)
  const compared = (answer = '', other = '') =>
    pageOf(`/log/${id}?answer=${answer}&other=${other}`)
  const [text, third, second, first] = ids
  t.match(await compared(second, first), /Member.*&quot;&lt;1&gt;&quot;/s)
  t.match(await compared(third, second), 'The values are the same')
  t.match(await compared(text, third), /Compared answers.*Line/s)
  t.match(await compared(text, text), 'The answers are the same.')
  t.match(await compared(text, '1'), 'One of these answers is not kept any more')
})

await t.test('the menu offers where events were sent lately, and a command', async (t: Test) => {
  const id = await send('order.paid')
  await postForm(base, `/log/${id}/replay`, { target_url: `${receiver.url}/lately` })
  await postForm(base, `/log/${id}/replay`, { target_url: `${receiver.url}/?token=hush-hush` })
  await postForm(base, `/log/${id}/replay`, { target_url: 'http://10.0.0.1/never' })
  const text = await pageOf(`/log/${first}`)
  const offered = [...text.matchAll(/name="target_url" value="([^"]+)"/g)].map(([, url]) => url)
  t.equal(offered[0], `${receiver.url}/lately`)
  t.ok(offered.length <= 5)
  t.notMatch(offered.join(' '), /token|never/, 'none that lacks its token, or was refused')
  t.match(text, /gatehouse forward http:\/\/127\.0\.0\.1:3000\/ .*--since 1 /)
  t.match(await pageOf(`/log/${id}`), 'Deliveries (3)')
  const shown = await pageOf(`/log/${id}?tab=deliveries`)
  t.same(
    attemptsIn(shown).map(({ outcome }) => outcome),
    ['refused', 'delivered', 'delivered'],
  )
  const wrong = await request(`${base}/log/${id}?tab=else`, { headers: OWN })
  t.equal(wrong.status, 400)
})
