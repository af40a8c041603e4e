import { randomBytes } from 'node:crypto'
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import { t } from 'tap'
import { exampleOf } from '../../fixtures/signing-bodies.ts'
import { postgres } from '../../helpers/backends.ts'
import { addDestination, destination, eventOf } from '../../helpers/destinations.ts'
import {
  addProvider,
  deliver,
  FORM_TYPE,
  payloadOf,
  plain,
  startHooks,
  store as storeAt,
  type Ack,
  type Bytes,
  type Fields,
} from '../../helpers/hooks.ts'
import { addEndpoint, callTool } from '../../helpers/mcp.ts'
import { request } from '../../helpers/http.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { until } from '../../helpers/until.ts'

// Bodies as senders send them: each is kept byte for byte, and read the same way by the preview,
// the filters, the search, the page and the templates.

const { base, env } = await startHooks(t, postgres, { HOOKS_REPLAY_TARGETS: '127.0.0.1' })
await addProvider(base, 'any', { open: true })
const receiver = await startReceiver(t)
const template = '{"v": {{json.name}}, "item": {{json.0.name}}, "deep": {{json.payload.name}}}'
await addDestination(base, 'all', receiver.url, { body_template: template })

type Sent = { headers: Fields; body: Buffer }

function typed(type: string, body: Buffer | string, encoding = '') {
  const headers = { 'Content-Type': type, ...(encoding && { 'Content-Encoding': encoding }) }
  return { headers, body: Buffer.from(body) }
}

const JSON_TYPE = 'application/json'
const FORM = FORM_TYPE['Content-Type']

/** A mark as each sender writes it; `ü` and `€` tell the charsets apart. */
const json = (name: string) => JSON.stringify({ name, n: 1 })
const encoded = (body: string, as: (bytes: Buffer) => Buffer, encoding: string) =>
  typed(JSON_TYPE, as(Buffer.from(body)), encoding)
const latin1 = (type: string, text: string) => typed(type, Buffer.from(text, 'latin1'))
const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')

/** Parts of `multipart/form-data`, as Mailgun and SendGrid send them. */
function multipart(...parts: readonly (readonly [head: string, content: Buffer | string])[]) {
  const bytes = parts.flatMap(([head, content]) => [
    Buffer.from(`--xYz\r\nContent-Disposition: form-data; ${head}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ])
  const body = Buffer.concat([...bytes, Buffer.from('--xYz--\r\n')])
  return typed('multipart/form-data; boundary="xYz"', body)
}

const pdf = Buffer.from([0x25, 0x50, 0x44, 0x46, 0, 0xff, 0x0d, 0x0a])
const attachment = 'name="attachment-1"; filename="a \\"b\\".pdf"\r\nContent-Type: application/pdf'

/** What is sent, how it is read, where its name is found, and what its row of the log says. */
type Row = {
  what: string
  send: (name: string) => Sent
  readAs: string | undefined
  path: string | undefined
  preview: (name: string, size: number) => string
}
const first = (name: string) => `name: ${name} · n: 1`
const unread = (word: string) => (_: string, size: number) => `${word}, ${size} B`

/** A row whose name is found where most have it, unless something else is said. */
const row = (
  what: string,
  send: Row['send'],
  readAs?: string,
  preview: Row['preview'] = first,
  path = 'name',
) => ({ what, send, readAs, preview, path })
/** A row of which no member can be read. */
const noMember = (what: string, send: Row['send'], preview: Row['preview'], readAs?: string) => ({
  what,
  send,
  readAs,
  preview,
  path: undefined,
})

const form = (fields: string, type: string = FORM) => typed(type, fields)
const escaped = encodeURIComponent

const ROWS: readonly Row[] = [
  row('JSON', (name) => typed(JSON_TYPE, json(name))),
  row('a form', (name) => form(`name=${escaped(name)}&n=1&tag=a&tag=b+c`), 'form'),
  row("GitHub's form", (name) => form(`payload=${escaped(json(name))}`), 'form'),
  row(
    'a form with a payload beside other fields',
    (name) => form(`payload=${escaped(json(name))}&token=t`),
    'form',
    (name) => `token: t · ${first(name)}`,
    'payload.name',
  ),
  row('JSON that curl sends as a form', (name) => form(json(name))),
  row(
    'a form in windows-1252',
    (name) => form(`name=${escapeBytes(name)}&n=1`, `${FORM}; charset=windows-1252`),
    'form',
  ),
  row(
    'multipart of fields',
    (name) => multipart(['name="name"', name], ['name="n"', '1'], [attachment, pdf]),
    'multipart',
    (name) => `${first(name)} · filename: a "b".pdf · content_type: application/pdf`,
  ),
  row(
    'multipart of SendGrid, with the charsets of its fields',
    (name) =>
      multipart(
        ['name="charsets"', '{"name":"iso-8859-1"}'],
        ['name="name"', Buffer.from(name, 'latin1')],
      ),
    'multipart',
    (name) => `charsets: {"name":"iso-8859-1"} · name: ${name}`,
  ),
  row(
    'multipart that ends early, with lines without CR',
    (name) =>
      typed(
        'multipart/form-data; boundary=b',
        `--b\nContent-Disposition: form-data; name=name\n\n${name}\n--b\nContent-Disp`,
      ),
    'multipart, cut',
    (name) => `name: ${name}`,
  ),
  row(
    'multipart with more parts than are read, most of them without a name',
    (name) =>
      multipart(
        ['name="name"', name],
        ...Array.from({ length: 1_000 }, () => ['nameless', ''] as const),
        ['name="n"', '1'],
      ),
    'multipart, cut',
    (name) => `name: ${name}`,
  ),
  row('gzip', (name) => encoded(json(name), gzipSync, 'gzip'), 'gzip'),
  row('deflate', (name) => encoded(json(name), deflateSync, 'deflate'), 'deflate'),
  row(
    'deflate without its head',
    (name) => encoded(json(name), deflateRawSync, 'Deflate'),
    'deflate',
  ),
  row('zstd', (name) => encoded(json(name), zstdCompressSync, 'zstd'), 'zstd'),
  row(
    'two encodings',
    (name) => encoded(json(name), (bytes) => gzipSync(brotliCompressSync(bytes)), 'br, gzip'),
    'br, gzip',
  ),
  row(
    'a form within gzip',
    (name) => typed(FORM, gzipSync(`name=${escaped(name)}&n=1`), 'gzip'),
    'gzip, form',
  ),
  row('text that is not encoded any more', (name) => typed(JSON_TYPE, json(name), 'gzip')),
  row(
    'JSON in iso-8859-1',
    (name) => latin1(`${JSON_TYPE}; charset=ISO-8859-1`, json(name)),
    'windows-1252',
  ),
  row('JSON in UTF-8, whatever its charset says', (name) =>
    typed(`${JSON_TYPE}; charset=ISO-8859-1`, json(name)),
  ),
  row('JSON in UTF-16', (name) => typed(JSON_TYPE, utf16(json(name))), 'utf-16le'),
  row('JSON after a byte order mark', (name) => typed(JSON_TYPE, `\ufeff${json(name)}`), 'utf-8'),
  row(
    'NDJSON',
    (name) => typed('application/x-ndjson', `${json(name)}\n{"n":1.10}\n`),
    'ndjson',
    (name) => `[{"name":"${name}","n":1}, {"n":1.10}]`,
    '0.name',
  ),
  row(
    'NDJSON within gzip, without its type',
    (name) => typed('text/plain', gzipSync(`${json(name)}\r\n{"n":2}`), 'gzip'),
    'gzip, ndjson',
    (name) => `[{"name":"${name}","n":1}, {"n":2}]`,
    '0.name',
  ),
  noMember(
    'lines of which one is no JSON',
    (name) => typed('application/x-ndjson', `${json(name)}\n{"n":`),
    (name) => `"name":"${name}","n":1} {"n":`,
  ),
  noMember(
    'XML that declares its charset',
    (name) => latin1('text/xml', `<?xml version="1.0" encoding="ISO-8859-1"?><a>${name}</a>`),
    (name) => `<?xml version="1.0" encoding="ISO-8859-1"?><a>${name}</a>`,
    'windows-1252',
  ),
  noMember(
    'a text of windows-1251 that nobody names',
    () => typed('text/plain', Buffer.from([0xcf, 0xf0, 0xe8])),
    unread('binary'),
  ),
  noMember(
    'bytes within gzip',
    () => typed('application/octet-stream', gzipSync(pdf), 'gzip'),
    unread('binary'),
    'binary',
  ),
  noMember(
    'gzip that ends early',
    (name) => typed(JSON_TYPE, gzipSync(json(name)).subarray(0, -9), 'gzip'),
    unread('damaged'),
    'damaged',
  ),
  noMember(
    'half a character of UTF-16',
    (name) => typed(JSON_TYPE, utf16(json(name)).subarray(0, -1)),
    unread('damaged'),
    'damaged',
  ),
  noMember(
    'an encoding that nobody knows',
    () => typed(JSON_TYPE, pdf, 'compress'),
    unread('unsupported'),
    'unsupported',
  ),
  noMember(
    'a bomb of 26 MiB',
    (name) =>
      typed(JSON_TYPE, Buffer.concat([gzipSync(randomBytes(300_000)), bomb(name)]), 'gzip'),
    () => 'oversized, 319 KB',
    'oversized',
  ),
  noMember(
    'a bomb of a hundred times its size',
    (name) => typed(JSON_TYPE, gzipSync(json(name) + ' '.repeat(60_000)), 'gzip'),
    unread('oversized'),
    'oversized',
  ),
]

/** 26 MiB of spaces. */
function bomb(name: string) {
  return gzipSync(json(name) + ' '.repeat(26 * 1024 * 1024))
}

/** Percent-encodes the bytes of windows-1252, in which Latin-1 is contained. */
function escapeBytes(text: string) {
  return [...Buffer.from(text, 'latin1')]
    .map((byte) => `%${byte.toString(16).padStart(2, '0')}`)
    .join('')
}

const store = ({ body, headers }: Sent) => storeAt(base, 'any', body, headers)

/** The cells of the rows of a filtered log, by id. */
async function previewsOf(query: Fields) {
  const search = new URLSearchParams({ limit: '200', ...query }).toString()
  const headers = { 'HX-Request': 'true' }
  const { text } = await request(`${base}/log?${search}`, { headers })
  const rows = text.matchAll(/<tr [^>]*data-id="(\d+)".*?class="preview"[^>]*>(.*?)<\/td>/gs)
  return new Map(Array.from(rows, ([, id, cell = '']) => [Number(id), plain(cell)] as const))
}

const jsonOf = async (id: number) =>
  (await request(`${base}/api/v1/events/${id}`)).json<Readonly<Record<string, unknown>>>()

await t.test('a body is read the same way everywhere, and kept as it was sent', async (t) => {
  const stored = []
  for (const [at, row] of ROWS.entries()) {
    const name = `Zoë-${at}-x`
    const sent = row.send(name)
    stored.push({ row, name, sent, id: await store(sent) })
  }
  const previews = await previewsOf({})
  const last = stored.at(-1)?.id
  await until(() => receiver.received.some((got) => eventOf(got) === last), 'the last delivery')
  const made = new Map(
    receiver.received.map((got) => [eventOf(got), JSON.parse(String(got.body)) as object]),
  )
  for (const { row, name, sent, id } of stored) {
    const { what, readAs, path, preview } = row
    const { read_as, readable } = await jsonOf(id)
    t.equal(read_as, readAs, `${what}: how it is read`)
    t.equal(previews.get(id), preview(name, sent.body.length), `${what}: preview`)
    t.ok((await payloadOf(base, id)).equals(sent.body), `${what}: byte for byte`)
    const isText = preview(name, 0).includes(name)
    const found = await previewsOf({ text: name })
    t.same([...found.keys()], isText ? [id] : [], `${what}: search`)
    t.equal(typeof readable === 'string', isText && readAs !== undefined, `${what}: readable`)
    const value = (wanted: string) => (path === wanted ? name : null)
    const filled = { v: value('name'), item: value('0.name'), deep: value('payload.name') }
    t.same(made.get(id), filled, `${what}: template`)
    if (path === undefined) continue
    t.same([...(await previewsOf({ json: `${path}=${name}` })).keys()], [id], `${what}: filter`)
    t.same([...(await previewsOf({ json: `*.name=${name}` })).keys()], [id], `${what}: anywhere`)
  }
})

await t.test('a signed receiver verifies what was sent, and reads what was meant', async (t) => {
  const body = (id: string) => JSON.stringify({ id, type: 'charge.succeeded' })
  const zip = { 'Content-Encoding': 'gzip' }
  const sent = await deliver(base, 'payments', gzipSync(body('evt_zipped')), zip)
  t.equal(sent.status, 202)
  t.match(await jsonOf(sent.json<Ack>().id), {
    event_type: 'charge.succeeded',
    external_id: 'evt_zipped',
    readable: body('evt_zipped'),
    verified: true,
  })
  const wrong = await deliver(base, 'payments', gzipSync(body('evt_2')), zip, { secret: 'other' })
  t.equal(wrong.status, 401)
  const broken = await deliver(base, 'payments', gzipSync(body('evt_3')).subarray(0, -4), zip)
  t.equal(broken.status, 400, 'it is neither JSON nor a form')
  const large = gzipSync(body('evt_4') + ' '.repeat(60_000))
  const kept = await deliver(base, 'payments', large, zip)
  t.equal(kept.status, 202, 'what decodes to too much is kept')
  t.match(await jsonOf(kept.json<Ack>().id), { read_as: 'oversized', event_type: null })
})

await t.test('the page of an event shows what was read, and what was sent', async (t) => {
  const pageOf = async (id: number, query = '') =>
    (await request(`${base}/log/${id}${query}`)).text
  const linesOf = (text: string) => {
    const tree = /<div class="(?:json|outline)".*?<\/div>/s.exec(text)?.[0] ?? ''
    return [
      ...tree.matchAll(/<(?:li|summary)>(.*?)(?=<\/?(?:li|summary|details|ul)\b)/gs),
    ].flatMap(([, line = '']) => plain(line).replace(/\s+/g, ' ') || [])
  }
  const form = await store(typed(FORM, 'a.b=1&to=x%2By&file=z'))
  const text = await pageOf(form)
  t.match(text, /Read as: form\./)
  t.same(linesOf(text), ['a.b: "1"', 'to: "x+y"', 'file: "z"'])
  t.match(text, /json=a%5C.b%3D1"/, 'a key with a dot leads to its events')
  t.match(text, /id="raw-payload">.*a\.b=1&amp;to=x%2By/s)

  const zipped = await store(encoded('{"n":1.10}', gzipSync, 'gzip'))
  t.match(await pageOf(zipped), /Read as: gzip\..*1\.10/s)
  const raw = await pageOf(zipped, '?raw=1')
  t.match(raw, 'The bytes are shown as base64.')
  t.match(raw, gzipSync('{"n":1.10}').toString('base64'))

  const mail = multipart(['name="to"', 'a@example.com'], [attachment, pdf])
  const fields = linesOf(await pageOf(await store(mail)))
  t.same(fields.slice(2), [
    'filename: "a \\"b\\".pdf"',
    'content_type: "application/pdf"',
    'size: 8',
  ])

  const file = multipart(['name="payload"; filename="a.json"', '{"n":1}'])
  t.same(linesOf(await pageOf(await store(file))), [
    'payload {2}',
    'filename: "a.json"',
    'size: 7',
  ])

  const cut = gzipSync('{"n":1}').subarray(0, -9)
  t.match(await pageOf(await store(typed(JSON_TYPE, cut, 'gzip'))), 'Not readable: damaged.')

  const xml = '<?xml version="1.0"?><a id="1"><!-- > --><b>x &amp; y</b><c/></a>'
  t.same(linesOf(await pageOf(await store(typed('application/xml', xml)))), [
    '<?xml version="1.0"?>',
    '<a id="1">',
    '<!-- > -->',
    '<b>x &amp; y</b>',
    '<c/>',
    '</a>',
  ])
  const yaml = 'a: 1\nlist:\n  - b: "x"\n\n    c: true # said\nd: e\n'
  const page = await pageOf(await store(typed('text/yaml', yaml)))
  t.same(linesOf(page), ['a: 1', 'list:', '- b: "x"', 'c: true # said', 'd: e'])
  t.match(page, /<summary>\s*<span class="key">list:<\/span>/)
  t.equal(page.split('<details open>').length - 1, 2, 'the list, and its item')
  for (const [type, text] of [
    ['application/xml', '<a><b></a></b></c>'],
    ['application/xml', '<a>'.repeat(50)],
    ['application/xml', `<a ${'""'.repeat(90_000)}/>`],
    ['application/yaml', 'a:\n'.repeat(2_000)],
  ] as const) {
    const shown = await pageOf(await store(typed(type, text)))
    t.match(shown, '<pre class="payload"', `${text.slice(0, 9)} is shown as text`)
  }
})

await t.test('a row shows no title that is a list, however deep it is', async () => {
  const deep = '['.repeat(7_500) + ']'.repeat(7_500)
  const body = `{"repository":{"full_name":"a/b"},"issue":{"number":1,"title":${deep}}}`
  const id = await store(typed(JSON_TYPE, body))
  t.equal((await previewsOf({})).get(id), 'a/b · #1')
})

await t.test('a form and JSON are compared by their members', async (t) => {
  const form = await store(typed(FORM, `payload=${encodeURIComponent('{"a":1,"b":2}')}`))
  const same = await store(typed(JSON_TYPE, '{"b":2,"a":1}'))
  const compared = async (id: number, other: number) =>
    plain(
      (await request(`${base}/log/${id}?compare=${other}`)).text.split('Compared with')[1] ?? '',
    )
  t.match(await compared(form, same), /The values are the same/)
  const zipped = await store(encoded('{"b":3,"a":1}', gzipSync, 'gzip'))
  t.match(await compared(zipped, form), /\sb\s+Event \d+: 3Event \d+: 2/)
})

await t.test('tools of models get what was read', async (t) => {
  const endpoint = await addEndpoint(base, 'reader')
  const id = await store(typed(FORM, `q.r=${'x'.repeat(70_000)}&k=Zo%C3%AB-tool`))
  const found = await callTool(endpoint, 'search_webhook_events', {
    members: { k: 'Zoë-tool' },
  })
  t.match(found, { structuredContent: { events: [{ id, preview: /^"q\.r":"x/ }] } })
  const got = await callTool(endpoint, 'get_webhook_event', { id })
  t.match(got, {
    structuredContent: { read_as: 'form', readable: /^\{"q\.r":"x/ },
    content: [{}, { text: /The end of readable is left out/ }, {}],
  })
})

await t.test('a destination wants members of what was read, and gets what was sent', async (t) => {
  // By the command: no other test gives it a member.
  const wanted = ['--json-member', String.raw`labels.app\.name=shop`]
  await destination(env, 'add', 'chosen', `${receiver.url}/chosen`, ...wanted)
  const labels = (name: string) => `{"labels":{"app.name":"${name}"}}`
  await store(encoded(labels('other'), gzipSync, 'gzip'))
  const zipped = encoded(labels('shop'), gzipSync, 'gzip')
  const id = await store(zipped)
  const got = await until(
    () => receiver.received.find(({ path }) => path === '/chosen'),
    'the delivery',
  )
  t.equal(eventOf(got), id, 'the other one is not wanted')
  t.ok(got.body.equals(zipped.body))
  t.match(got.headers, { 'content-encoding': 'gzip', 'content-type': JSON_TYPE })
})

// What a row of the log says of a payload.

const storeText = (body: Bytes, headers = {}) => storeAt(base, 'any', body, headers)

/** The preview of one of the newest events, as HTML. */
async function cellOf(id: number, query = '') {
  const { text } = await request(`${base}/log?limit=5${query}`, {
    headers: { 'HX-Request': 'true' },
  })
  const row = new RegExp(`<tr [^>]*data-id="${id}".*?class="preview"[^>]*>(.*?)</td>`, 's')
  return row.exec(text)?.[1]?.trim() ?? ''
}

const pad = 'x'.repeat(5_000)
const SHA = '6dcb09b5b57875f334f61aebed695e2e4193db5e'

/** An event of Stripe, indented as it is sent. */
function stripe(object: object) {
  const event = { id: 'evt_1', object: 'event', api_version: '2026-03-31', data: { object } }
  return JSON.stringify({ ...event, livemode: false, type: 'any' }, null, 2)
}

/** A push in GitHub's order: the commits come last, and may be cut. */
function push(commits: number, message = '') {
  const start = { ref: 'refs/heads/main', before: SHA, after: SHA }
  const repository = { id: 1, full_name: 'acme/shop' }
  const list = Array.from({ length: commits }, () => ({ id: SHA, message }))
  const who = { pusher: { name: 'ann' }, sender: { login: 'ann' } }
  return JSON.stringify({ ...start, repository, ...who, commits: list, head_commit: null })
}

await t.test('a preview says what the payload means', async (t) => {
  const invoice = { id: 'in_1', object: 'invoice', currency: 'eur', amount_due: 20558 }
  const rows: readonly (readonly [what: string, body: Bytes, preview: string])[] = [
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
    ['Stripe: cut', stripe({ ...invoice, status: 'open', lines: [pad, pad] }), '€205.58 · open'],
    ['GitHub: a push', push(3), 'acme/shop · main · 3 commits by ann'],
    ['GitHub: one commit', push(1), 'acme/shop · main · 1 commit by ann'],
    ['GitHub: a star', exampleOf('star'), 'Codertocat/Hello-World · created by Codertocat'],
    ['GitHub: cut', push(9, pad), 'acme/shop · main · 4+ commits by ann'],
    [
      'GitHub: a pull request',
      exampleOf('issues'),
      'Codertocat/Hello-World · #1 Spelling error in the README file · edited by Codertocat',
    ],
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
    ['nothing telling', '{"id":7}', '"id":7'],
    ['JSON on lines', '{\n  "a": 1,\r\n\t"b": {"c": 2}\n}\n', 'a: 1 · c: 2'],
    ['text', 'a=1&b=<b>\u001b[31m', 'a=1&b=<b> [31m'],
    ['nothing', '', 'empty'],
    ['a zero byte', 'text\0with a zero byte', 'binary, 21 B'],
    ['half a character', Buffer.from('cut ü').subarray(0, 5), 'binary, 5 B'],
    // A character of two or four bytes lies across the end of what is read.
    ['two bytes', `a${'ü'.repeat(1_000_000)}`, `a${'ü'.repeat(119)}…`],
    ['four bytes', `a${'🦄'.repeat(1_000)}`, `a${'🦄'.repeat(74)}…`],
    ['no text later on', Buffer.from(`${'x'.repeat(400)}\xff`, 'latin1'), `${'x'.repeat(120)}…`],
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
    const cell = await cellOf(await storeText(body))
    t.equal(plain(cell), preview, what)
  }
  const command = await storeText('command=%2Fdeploy&text=main+now', FORM_TYPE)
  t.equal(plain(await cellOf(command)), '/deploy main now', 'Slack: a command')
})

await t.test('a preview is hostile text: escaped, and each part by itself', async (t) => {
  const about = { customer_name: '\u202E<b>x', currency: 'eur', amount: 100, status: 'paid' }
  const cell = await cellOf(await storeText(stripe(about)))
  t.equal(
    cell.replaceAll(/\s+/g, ' '),
    '<bdi>\u202E&lt;b&gt;x</bdi> · <bdi>€1.00</bdi> · <bdi>paid</bdi>',
  )
})

await t.test('after a search the match is shown, and marked', async (t) => {
  const early = await storeText('{"note":"a <needle> here"}')
  const deep = await storeText(JSON.stringify({ z: 1, pad, at: 'before the <needle> after' }))
  const late = await storeText(
    JSON.stringify({ total: 3, pad: 'ü'.repeat(40_000), at: '<needle>' }),
  )
  const query = '&text=%3Cneedle%3E'
  const mark = '<mark>&lt;needle&gt;</mark>'
  t.match(await cellOf(early, query), `a ${mark} here`)
  const cell = await cellOf(deep, query)
  t.match(cell, /^<bdi>…x+/)
  t.match(cell, `before the ${mark} after`)
  t.equal(plain(await cellOf(late, query)).split(' · ')[0], 'total: 3', 'too far behind')
})
