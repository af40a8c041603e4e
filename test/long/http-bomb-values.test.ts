import { t } from 'tap'
import type { Test } from 'tap'
import { extent } from '../helpers/program.ts'
import { request } from '../helpers/http.ts'
import { openSockets } from '../helpers/process-figures.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { FORM_TYPE, JSON_TYPE, deliver, payloadOf, post } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'
import { HOOKS_LIMIT, flood, headOf, isWell, startBombed } from './bomb-setup.ts'

// Bodies, queries and paths within the limits whose content is the bomb, and more bodies at once than
// there is memory for: each is answered as its contract says, never 5xx but for the 503 of too many
// bodies (and the 502 of an alert without a model); nothing of what is refused is stored, and the
// next request is answered.

const CLIENTS = extent({ short: 140, long: 200 })

const bombed = await startBombed(t)
const { server, bearer, portOf } = bombed
const { hooks, links, ops } = server
const { generic, 'links API': linksApi } = bombed.targets
if (generic === undefined || linksApi === undefined) throw new Error('a target is missing')

const lists = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const objects = (depth: number): string => `${'{"0":'.repeat(depth)}1${'}'.repeat(depth)}`
const numbered = (count: number): string =>
  Array.from({ length: count }, (_, at) => `"${at}x":1`).join(',')
/** Members of a JSON object. */
const MEMBERS: Readonly<Record<string, string>> = {
  '10,000 lists': `"a":${lists(10_000)}`,
  '100,000 lists': `"a":${lists(100_000)}`,
  '10,000 objects': `"a":${objects(10_000)}`,
  '100,000 objects': `"a":${objects(100_000)}`,
  '50,000 members': numbered(50_000),
  'a name 20,000 times': `${'"a":1,'.repeat(20_000)}"a":2`,
  'names of prototypes':
    '"__proto__":{"admin":true,"toJSON":1},"constructor":{"prototype":{"a":1}}',
  'numbers without end': `"a":1e999999,"b":-1e999999,"c":1e-999999,"d":${'9'.repeat(10_000)}`,
}

await t.test('JSON', async (t: Test) => {
  const before = await bombed.stored()
  let [events, made] = [0, 0]
  for (const [name, members] of Object.entries(MEMBERS)) {
    const asJson = (authorization: string, first: string): Parameters<typeof request>[1] => ({
      method: 'POST',
      headers: { ...JSON_TYPE, authorization },
      body: `{${first},${members}}`,
      timeoutMs: 30_000,
    })
    const body = `{${members}}`
    const open = await post(hooks, 'generic/lan', body)
    t.equal(open.status, 202, `generic: ${name}`)
    t.equal((await payloadOf(hooks, open.json<{ id: number }>().id)).toString(), body)
    t.equal((await deliver(hooks, 'code_host', body)).status, 202, `signed: ${name}`)
    const handshake = `{"type":"url_verification","challenge":{${members}},${members}}`
    const greeted = await deliver(hooks, 'chat', handshake)
    t.match([greeted.status, greeted.json()], [200, { challenge: '' }], `handshake: ${name}`)
    events += 2

    const tool = '"jsonrpc":"2.0","id":1,"method":"tools/list"'
    const listed = await request(`${hooks}/mcp/agent`, asJson(bearer.mcp, tool))
    t.equal(listed.status, 200, `tools: ${name}`)

    const small = members.length < 65_000
    // By hand: the check of the API against its document is not made for such depth.
    const link = `{"slug":"bomb-${made}","url":"https://bomb.test/",${members}}`
    const api = headOf(linksApi, `Content-Length: ${link.length}`, 'Connection: close')
    const { text } = await flood(portOf('links'), api, link, 1)
    t.match(text, small ? /^HTTP\/1\.1 201 / : /^HTTP\/1\.1 413 /, `links API: ${name}`)
    if (small) made++

    const prompt = await request(`${ops}/api/v1/memories`, asJson('', '"category":"timing"'))
    t.equal(prompt.status, 400, `ops API: ${name}`)
    const asked = '"model":"nobody","messages":[{"role":"user","content":"?"}]'
    const chat = await request(`${ops}/v1/chat/completions`, asJson(bearer.ops, asked))
    t.equal(chat.status, 404, `chat: ${name}`)
    const alert = await request(`${ops}/api/v1/webhook`, asJson(bearer.ops, '"tier":2'))
    t.ok([202, 502].includes(alert.status), `alert: ${name}: ${alert.status}`)
  }
  const deep = await deliver(
    hooks,
    'chat',
    `{"type":"url_verification","challenge":${lists(100_000)}}`,
  )
  t.match([deep.status, deep.json()], [200, { challenge: '' }], 'a challenge that is no text')
  const [had = 0, ...others] = before
  t.same(await bombed.stored(), [had + events, made, ...others.slice(1)])
  await isWell(t, bombed, 'JSON')
})

await t.test('forms and queries', async (t: Test) => {
  const fields = 'a=1&'.repeat(100_000)
  const parts = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'.repeat(20_000)
  const multipart = { 'Content-Type': 'multipart/form-data; boundary=x' }
  const before = await bombed.stored()
  for (const url of [`${hooks}/settings`, `${links}/-/new`, `${ops}/memories`]) {
    const form = { method: 'POST', timeoutMs: 30_000 }
    const large = await request(url, { ...form, headers: FORM_TYPE, body: fields })
    t.equal(large.status, 413, url)
    const other = await request(url, { ...form, headers: multipart, body: `${parts}--x--` })
    t.equal(other.status, 415, url)
  }
  const signed = `type=push&${'a&'.repeat(500_000)}`
  const taken = await deliver(hooks, 'payments', signed, FORM_TYPE)
  t.equal(taken.status, 202, 'a signed form of 500,000 fields')
  const { id } = taken.json<{ id: number }>()
  t.equal((await payloadOf(hooks, id)).toString(), signed, 'stored as it came')

  const long = 'a'.repeat(15_000)
  const tails = [
    long,
    '%41'.repeat(5_000),
    '%'.repeat(15_000),
    '/a'.repeat(7_500),
    '.'.repeat(15_000),
  ]
  const queries = ['a=1&'.repeat(3_700), `q=${long}`, `text=${'%'.repeat(15_000)}`]
  const paths: Record<string, readonly string[]> = {
    [hooks]: ['/', '/webhooks/generic/', '/mcp/', '/log/'],
    [links]: ['/', '/docs/', '/-/', '/api/v1/links/'],
    [ops]: ['/', '/sessions/', '/api/v1/sessions/'],
  }
  for (const [base, starts] of Object.entries(paths)) {
    for (const tail of tails) {
      for (const start of starts) {
        const { status } = await request(base, { path: start + tail })
        t.ok(status >= 400 && status < 500, `${start}${tail.slice(0, 9)}: ${status}`)
      }
    }
    for (const query of queries) {
      for (const start of ['/', '/log', '/-/all', '/docs', '/api/v1/events', '/relay']) {
        const { status } = await request(base, { path: `${start}?${query}` })
        t.ok(status < 500, `${start}?${query.slice(0, 9)}: ${status}`)
      }
    }
  }
  const [had = 0, ...others] = before
  t.same(await bombed.stored(), [had + 1, ...others], 'the form alone')
  await isWell(t, bombed, 'forms and queries')
})

await t.test('more bodies at once than there is memory for', async (t: Test) => {
  const before = await bombed.stored()
  const start = headOf(generic, `Content-Length: ${HOOKS_LIMIT - 1}`, 'Connection: close')
  const most = Buffer.concat([Buffer.from(start), Buffer.alloc(HOOKS_LIMIT - 2, 'x')])
  const held = await openSockets(t, portOf('hooks'), CLIENTS, { first: most, atOnce: 20 })
  const refused = (): number => held.filter(({ text }) => /^HTTP\/1\.1 503 /.test(text)).length
  await until(() => refused() > 0, 'the budget to be used up', 30_000)
  t.equal((await request(`${hooks}/healthz`)).status, 200, 'others are answered meanwhile')
  for (const { socket } of held) if (socket.writable) socket.write('x')
  const answered = (): boolean => held.every(({ text, closed }) => closed || text.includes('}'))
  await until(answered, 'all to be answered', 60_000)
  const stored = held.filter(({ text }) => /^HTTP\/1\.1 202 /.test(text)).length
  t.comment(`${stored} stored, ${refused()} refused`)
  t.ok(stored > 0)
  const [had = 0, ...others] = before
  t.same(await bombed.stored(), [had + stored, ...others], 'those that were accepted, no others')
  const next = await post(hooks, 'generic/lan', Buffer.alloc(HOOKS_LIMIT, 'y'))
  t.equal(next.status, 202, 'the budget is free again')
  await isWell(t, bombed, 'many bodies')
})

t.test('the log', async (t: Test) => {
  noFailureIn(t, server)
})
