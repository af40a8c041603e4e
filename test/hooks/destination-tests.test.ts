import { t } from 'tap'
import type { Test } from 'tap'
import { Webhook } from 'standardwebhooks'
import { apiOf } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { destination, listed } from '../helpers/destinations.ts'
import { addProvider, FORM_TYPE, post, postForm, startHooks } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secretKey, signingSecret } from '../helpers/senders.ts'

const PAGE = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
const HTMX = { 'HX-Request': 'true', 'Sec-Fetch-Site': 'same-origin' }

await onPostgres(t, 'a test of a destination', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend, {
    HOOKS_REPLAY_TARGETS: '127.0.0.1',
    GATEHOUSE_SECRET_KEY: secretKey(),
  })
  await addProvider(base, 'lan', { open: true })
  const receiver = await startReceiver(t, ({ headers }, response) => {
    response.writeHead(404).end(`no path for ${headers['x-key']}`)
  })
  const secret = signingSecret()
  const key = 'value-of-the-key'
  const url = `${receiver.url}/in?token=geheim`
  const api = apiOf(base)
  await api('POST', '/destinations', {
    ...{ name: 'erp', url, sign_with: { secret }, headers: { 'X-Key': key } },
  })

  await t.test('it is sent as a delivery is, and counts as none', async (t) => {
    const { status, json } = await api('POST', '/destinations/erp/test')
    t.equal(status, 200)
    const answer = 'no path for «redacted»'
    t.match(json, { outcome: 'failed', status: 404, detail: null, answer })
    const got = receiver.received.at(-1)
    t.match(got, {
      path: '/in?token=geheim',
      headers: { 'x-gatehouse-test': 'true', 'x-key': key },
    })
    const body = String(got?.body)
    t.match(new Webhook(secret).verify(body, got?.headers as Record<string, string>), {
      test: true,
    })
    t.match(got?.headers['idempotency-key'], /^test-/, 'no event has this key')
    const state = { delivered: 0, waiting: 0, dead: 0, last_status: null, failing: false }
    t.match(await listed(env, 'erp'), state)
  })

  await t.test('a form sends one before it is saved, with the stored secrets', async (t) => {
    const fields = { url: `${receiver.url}/in?token=«redacted»`, sign_with: 'standard' }
    const part = await postForm(base, '/destinations/erp/test', fields, HTMX)
    t.match(part.text, /^<div\s+id="test-result"[\s\S]*test failed[\s\S]*Answered 404 in \d+ ms/)
    t.match(receiver.received.at(-1), { path: '/in?token=geheim', headers: { 'x-key': key } })
    const draft = { url: `${receiver.url}/draft`, event_type: 'push', headers: 'X-Key: other-key' }
    const page = await postForm(base, '/destinations/-/test', draft, PAGE)
    t.match(page, { status: 200, text: /value="push"[\s\S]*Answered 404/ })
    t.notMatch(page.text, 'other-key', 'secrets are not shown again')
    t.match(receiver.received.at(-1), { path: '/draft', headers: { 'x-key': 'other-key' } })
    const { stdout } = await destination(env, 'list')
    t.equal(stdout.trim().split('\n').length, 2, 'nothing is saved')
  })

  await t.test('what is refused', async (t) => {
    const count = receiver.received.length
    const state = async () => [receiver.received.length, await listed(env, 'erp')]
    const form = (fields: Readonly<Record<string, string>>, path = '-') => ({
      ...{ call: `POST /destinations/${path}/test`, headers: FORM_TYPE },
      body: new URLSearchParams(fields).toString(),
    })
    const rows: readonly Refusal[] = [
      [{ call: 'POST /api/v1/destinations/none/test' }, 404],
      [form({ url: 'http://10.0.0.1/' }), 422, undefined, /HOOKS_REPLAY_TARGETS/],
      [form({ url: 'ftp://x/' }), 422, undefined, /^url must be an http:/],
      [form({ url: 'http://10.0.0.1/' }, 'erp'), 422, undefined, /HOOKS_REPLAY_TARGETS/],
    ]
    await refuseAll(t, { service: 'hooks', base, state }, rows)
    t.equal(receiver.received.length, count)
    const part = await postForm(base, '/destinations/-/test', { url: 'x' }, HTMX)
    t.match(part, { status: 422, text: /^<div\s+id="test-result"[\s\S]*must be an http/ })
    await backend.query(env, `update hooks.destinations set url = 'http://10.0.0.1/'`)
    t.match((await api('POST', '/destinations/erp/test')).json, {
      ...{ outcome: 'refused', status: null, detail: /HOOKS_REPLAY_TARGETS/ },
    })
  })
})

await onPostgres(t, 'what filters would have matched', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend)
  await addProvider(base, 'lan', { open: true })
  const matches = async (fields: Readonly<Record<string, string>>) => {
    const query = new URLSearchParams(fields).toString()
    const { text } = await request(`${base}/destinations/-/matches?${query}`, { headers: HTMX })
    return /role="status">\s*(.*?)\s*</.exec(text)?.[1]
  }
  t.equal(await matches({}), 'No events came so far.')
  for (const [type, body] of [
    ['push', '{"ref":"main"}'],
    ['invoice.paid', '{"ref":"main"}'],
    ['invoice.failed', '{}'],
  ] as const) {
    await post(base, 'generic/lan', body, { 'X-Event-Type': type })
  }

  await t.test('each filter counts', async (t) => {
    for (const [fields, count] of [
      [{}, 3],
      [{ event_type: 'push' }, 1],
      [{ event_type: 'invoice.*' }, 2],
      [{ event_type: 'invoice.*', event_types: 'push\n' }, 3],
      [{ provider: 'generic:lan' }, 3],
      [{ provider: 'code_host' }, 0],
      [{ json: 'ref=main', event_type: 'invoice.*' }, 1],
    ] as const) {
      t.equal(
        await matches(fields),
        `Matches ${count} of the last 3 events.`,
        JSON.stringify(fields),
      )
    }
    t.equal(await matches({ json: 'ref' }), 'A filter is not complete yet.')
  })

  await t.test('the page says it without script, and offers providers and types', async (t) => {
    const { text } = await request(`${base}/destinations/-/new?event_type=push`)
    t.match(text, /Matches 1 of the last 3 events\./)
    t.match(text, /<option value="invoice\.paid">/)
    t.match(text, /<option value="generic:lan">generic:lan<\/option>/)
    const refused = await postForm(base, '/destinations', { url: 'x', event_type: 'push' }, PAGE)
    t.match(refused, { status: 422, text: /Matches 1 of the last 3 events\./ })
  })

  await t.test('of a million events only the newest are counted', async (t) => {
    await backend.query(
      env,
      `insert into hooks.events (received_at, trust, provider, event_type, headers, payload)
       select now(), 3, 'generic:lan', 'many', '[]', '{}' from generate_series(1, 2000)`,
    )
    t.equal(await matches({ event_type: 'many' }), 'Matches 1,000 of the last 1,000 events.')
  })
})
