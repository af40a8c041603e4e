import { t } from 'tap'
import { backends } from '../../helpers/backends.ts'
import {
  addProvider,
  FORM_TYPE,
  plain,
  startHooks,
  store as storeAt,
} from '../../helpers/hooks.ts'
import { request } from '../../helpers/http.ts'
import { exampleOf } from '../../fixtures/signing-bodies.ts'

// What a row of the log says of a payload.

const { base } = await startHooks(t, backends[1])
await addProvider(base, 'any', { open: true })

const store = (body: string, headers = {}) => storeAt(base, 'any', body, headers)

/** The cell of a row, as HTML. */
async function cellOf(id: number, query = ''): Promise<string> {
  const { text } = await request(`${base}/log?limit=200${query}`, {
    headers: { 'HX-Request': 'true' },
  })
  const row = new RegExp(`<tr [^>]*data-id="${id}".*?class="preview"[^>]*>(.*?)</td>`, 's')
  return row.exec(text)?.[1]?.trim() ?? ''
}

const pad = 'x'.repeat(5_000)
const SHA = '6dcb09b5b57875f334f61aebed695e2e4193db5e'

/** An event of Stripe, indented as it is sent. */
function stripe(object: object): string {
  const event = { id: 'evt_1', object: 'event', api_version: '2026-03-31', data: { object } }
  return JSON.stringify({ ...event, livemode: false, type: 'any' }, null, 2)
}

/** A push in GitHub's order: the commits come last, and may be cut. */
function push(commits: number, message = ''): string {
  const start = { ref: 'refs/heads/main', before: SHA, after: SHA }
  const repository = { id: 1, full_name: 'acme/shop' }
  const list = Array.from({ length: commits }, () => ({ id: SHA, message }))
  const who = { pusher: { name: 'ann' }, sender: { login: 'ann' } }
  return JSON.stringify({ ...start, repository, ...who, commits: list, head_commit: null })
}

await t.test('a preview says what the payload means', async (t) => {
  const invoice = { id: 'in_1', object: 'invoice', currency: 'eur', amount_due: 20558 }
  const rows: readonly (readonly [what: string, body: string, preview: string])[] = [
    [
      'Stripe: an invoice',
      stripe({ ...invoice, customer: 'cus_1', customer_name: 'Globex', status: 'open' }),
      'Globex · €205.58 · open',
    ],
    [
      'Stripe: a charge',
      stripe({ amount: 500, currency: 'jpy', billing_details: { name: 'Ann' }, status: 'failed' }),
      'Ann · ¥500 · failed',
    ],
    ['Stripe: a currency of three digits', stripe({ amount: 5120, currency: 'kwd' }), 'KWD 5.120'],
    ['Stripe: a customer', stripe({ id: 'cus_1', email: 'ann@example.com' }), 'ann@example.com'],
    ['Stripe: none of these', stripe({ id: 'po_1', arrival: 'soon' }), 'arrival: soon'],
    ['Stripe: cut', stripe({ ...invoice, status: 'open', lines: [pad, pad] }), '€205.58 · open'],
    ['GitHub: a push', push(3), 'acme/shop · main · 3 commits by ann'],
    ['GitHub: one commit', push(1), 'acme/shop · main · 1 commit by ann'],
    ['GitHub: cut', push(9, pad), 'acme/shop · main · 4+ commits by ann'],
    [
      'GitHub: push',
      exampleOf('push'),
      'Codertocat/Hello-World · simple-tag · created by Codertocat',
    ],
    [
      'GitHub: a pull request',
      exampleOf('issues'),
      'Codertocat/Hello-World · #1 Spelling error in the README file · edited by Codertocat',
    ],
    ['GitHub: a star', exampleOf('star'), 'Codertocat/Hello-World · created by Codertocat'],
    [
      'Slack: a message',
      JSON.stringify({ type: 'event_callback', event: { type: 'message', text: 'Ship it' } }),
      'Ship it',
    ],
    [
      'the first telling values',
      '{"id":7,"url":"https://a.test","total":12,"ok":true}',
      'total: 12 · ok: true',
    ],
    ['inner values after the outer', '{"a":{"b":1},"c":2}', 'c: 2 · b: 1'],
    ['nothing telling', '{"id":7}', '"id":7'],
    ['cut by characters', `{"a":"${'🦄'.repeat(2_000)}"}`, `a: ${'🦄'.repeat(57)}…`],
    ['spaces and control characters', '{"a":"1\\n\\u001b[31m 2"}', 'a: 1 [31m 2'],
    ['deep brackets', `{"a":${'['.repeat(4_000)}`, `"a":${'['.repeat(116)}…`],
    ['not what it seems', '{"object":"event","data":{"object":7},"n":1}', 'n: 1'],
    [
      'members of other kinds',
      '{"repository":"acme","text":["x"],"n":1}',
      'repository: acme · n: 1',
    ],
  ]
  for (const [what, body, preview] of rows) {
    const cell = await cellOf(await store(body))
    t.equal(plain(cell), preview, what)
  }
  const command = await store('command=%2Fdeploy&text=main+now', FORM_TYPE)
  t.equal(plain(await cellOf(command)), '/deploy main now', 'Slack: a command')
})

await t.test('a preview is hostile text: escaped, and each part by itself', async (t) => {
  const about = { customer_name: '\u202E<b>x', currency: 'eur', amount: 100, status: 'paid' }
  const cell = await cellOf(await store(stripe(about)))
  t.equal(
    cell.replaceAll(/\s+/g, ' '),
    '<bdi>\u202E&lt;b&gt;x</bdi> · <bdi>€1.00</bdi> · <bdi>paid</bdi>',
  )
})

await t.test('after a search the match is shown, and marked', async (t) => {
  const early = await store('{"note":"a <needle> here"}')
  const deep = await store(JSON.stringify({ z: 1, pad, at: 'before the <needle> after' }))
  const late = await store(JSON.stringify({ total: 3, pad: 'ü'.repeat(40_000), at: '<needle>' }))
  const query = '&text=%3Cneedle%3E'
  const mark = '<mark>&lt;needle&gt;</mark>'
  t.match(await cellOf(early, query), `a ${mark} here`)
  const cell = await cellOf(deep, query)
  t.match(cell, /^<bdi>…x+/)
  t.match(cell, `before the ${mark} after`)
  t.equal(plain(await cellOf(late, query)).split(' · ')[0], 'total: 3', 'too far behind')
})
