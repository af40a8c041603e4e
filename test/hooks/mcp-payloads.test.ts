import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { addProvider, post, startHooks, type Ack, type Bytes } from '../helpers/hooks.ts'
import { addEndpoint, callTool, errorOf, legacy, modern, type Json } from '../helpers/mcp.ts'

const SEARCH = 'search_webhook_events'
const MIB = 1024 * 1024

type Found = {
  events: readonly { id: number; preview: string | null }[]
  next_cursor: string | null
  searched_to: string | null
}
type Contents = { uri: string; mimeType: string; text?: string; blob?: string }
type Link = { type: string; uri: string; name: string; mimeType: string; size: number }

const [, postgres] = backends

async function send(base: string, body: Bytes, headers: Record<string, string> = {}) {
  return (await post(base, 'generic/lan', body, headers)).json<Ack>().id
}

await t.test('search: members, text and header, with the beginning of each payload', async (t) => {
  const { base } = await startHooks(t, postgres)
  await addProvider(base, 'lan', { open: true })
  const endpoint = await addEndpoint(base, 'agent')
  const search = async (args: Record<string, unknown>): Promise<Found> =>
    (await callTool(endpoint, SEARCH, args))['structuredContent'] as unknown as Found
  const found = async (args: Record<string, unknown>): Promise<readonly number[]> =>
    (await search(args)).events.map(({ id }) => id)

  const paid = await send(
    base,
    '{"data":{"object":{"id":"evt_1","amount":1250,"live":true,"note":"two words"}}}',
    { 'X-Event-Type': 'invoice.paid' },
  )
  const items = await send(base, '{"items":[{"sku":"a"},{"sku":"ü"}],"n":12345678901234567890}')
  const plain = await send(base, 'evt_1 and no JSON')
  const bytes = await send(base, Uint8Array.of(0xff, 0x00, 0x65, 0x76, 0x74, 0x5f, 0x31))

  const object = (members: object) =>
    Object.fromEntries(
      Object.entries(members).map(([name, value]) => [`data.object.${name}`, value]),
    )
  const cases: readonly (readonly [Record<string, unknown>, readonly number[]])[] = [
    [{ members: object({ id: 'evt_1' }) }, [paid]],
    [{ members: object({ id: 'evt_1', amount: 1250, live: true }) }, [paid]],
    [{ members: object({ id: 'evt_1', amount: 1251 }) }, []],
    [{ members: object({ note: 'two words' }) }, [paid]],
    [{ members: object({ note: 'two' }) }, []],
    [{ members: { 'items.1.sku': 'ü' } }, [items]],
    [{ members: { n: '12345678901234567890' } }, [items]],
    [{ text: 'evt_1' }, [bytes, plain, paid]],
    [{ text: 'evt_1', members: object({ live: true }) }, [paid]],
    [{ header: 'x-event-type=invoice.paid' }, [paid]],
    [{ text: 'evt_1', event_type: 'invoice.*' }, [paid]],
    [{ text: 'evt_1', since: plain, until: plain }, [plain]],
    [{ text: 'evt_1', provider: 'generic:nobody' }, []],
  ]
  for (const [args, ids] of cases) t.same(await found(args), ids, JSON.stringify(args))

  const { events, searched_to } = await search({ text: 'evt_1' })
  t.same(
    events.map(({ preview }) => preview),
    [
      null,
      'evt_1 and no JSON',
      '"data":{"object":{"id":"evt_1","amount":1250,"live":true,"note":"two words"}}',
    ],
  )
  t.equal(searched_to, null, 'all were searched')

  const first = await search({ text: 'evt_1', limit: 2 })
  t.equal(first.events.length, 2)
  const rest = await search({ text: 'evt_1', limit: 2, cursor: first.next_cursor })
  t.match(rest, { events: [{ id: paid }], next_cursor: null })

  const refused: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [{}, /Give text, members or header/],
    [{ provider: 'generic:lan' }, /Give text, members or header/],
    [{ members: {} }, /^members /],
    [{ members: { 'a..b': 1 } }, /members may have paths such as/],
    [{ members: { a: 'one\ntwo' } }, /on one line/],
    [{ members: { a: 'x'.repeat(500) } }, /short values/],
    [{ members: { a: 'x'.repeat(300), b: 'x'.repeat(300) } }, /500 characters at most/],
    [{ members: { a: null } }, /^members/],
    [{ members: { a: { b: 1 } } }, /^members/],
    [{ members: { a: 2 ** 60 } }, /^members/],
    [{ members: 'a=1' }, /^members /],
    [{ text: '' }, /^text /],
    [{ text: 'x', json: 'a=1' }, /json/],
    [{ text: 'x', limit: 201 }, /^limit /],
    [{ text: 'x', cursor: 'none of ours' }, /cursor/],
  ]
  for (const [args, message] of refused) {
    const error = errorOf(await callTool(endpoint, SEARCH, args))
    t.match(error, { code: 'invalid_argument', message }, JSON.stringify(args))
  }
})

await onPostgres(t, 'a payload as resources', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend)
  await addProvider(base, 'lan', { open: true })
  const endpoint = await addEndpoint(base, 'agent')

  async function read(uri: string): Promise<readonly Contents[]> {
    const answer = await modern(endpoint, 'resources/read', { uri })
    const { result } = answer.json<{ result: Json }>()
    return result['contents'] as unknown as readonly Contents[]
  }
  async function links(id: number): Promise<readonly Link[]> {
    const { content } = await callTool(endpoint, 'get_webhook_event', { id })
    const blocks = content as unknown as readonly Link[]
    return blocks.filter(({ type }) => type === 'resource_link')
  }
  /** The bytes of all parts, as the links of an event name them. */
  async function readAll(id: number): Promise<{ parts: number; bytes: Buffer }> {
    const parts: Buffer[] = []
    for (const { uri } of await links(id)) {
      const [part] = await read(uri)
      parts.push(
        Buffer.from(part?.text ?? part?.blob ?? '', part?.text === undefined ? 'base64' : 'utf8'),
      )
    }
    return { parts: parts.length, bytes: Buffer.concat(parts) }
  }

  await t.test(
    'a link for each MiB of what is over 64 KiB, whose parts are the payload',
    async (t) => {
      const text = (lead: number, size: number) => 'x'.repeat(lead) + '€'.repeat(size / 3)
      const cases: readonly (readonly [string, Bytes, number])[] = [
        ['64 KiB', 'x'.repeat(64 * 1024), 0],
        ['a byte more', 'x'.repeat(64 * 1024 + 1), 1],
        ['a MiB', 'x'.repeat(MIB), 1],
        ['a MiB and a byte', 'x'.repeat(MIB + 1), 2],
        ...[0, 1, 2].map((lead) => [`€ after ${lead}`, text(lead, 2 * MIB + 3), 3] as const),
        ['no text', Buffer.alloc(2 * MIB + 5, 0x80), 3],
      ]
      for (const [what, body, parts] of cases) {
        const id = await send(base, body)
        const all = await readAll(id)
        t.equal(all.parts, parts, `${what}: parts`)
        if (parts > 0) t.ok(all.bytes.equals(Buffer.from(body)), `${what}: the bytes`)
      }
    },
  )

  await t.test('each says what it is', async (t) => {
    const id = await send(base, `<script>${'é'.repeat(MIB)}`, { 'Content-Type': 'text/html' })
    const uri = `gatehouse://events/${id}/payload/1`
    const [first] = await links(id)
    t.match(first, { uri, mimeType: 'text/plain', size: MIB, description: /untrusted/ })
    const [payload, notice] = await read(uri)
    t.match(payload, { uri, mimeType: 'text/plain', text: /^<script>é/ })
    t.match(notice, { text: /untrusted text .* never follow/ }, 'a label beside it')
    const { content } = await callTool(endpoint, 'get_webhook_event', { id })
    const said = (content as unknown as readonly { text: string }[])[1]?.text
    t.match(said, `The resources ${uri} to gatehouse://events/${id}/payload/3 have all of it.`)

    const small = await send(base, '{"small":true}')
    const [whole] = await read(`gatehouse://events/${small}/payload/1`)
    t.match(whole, { text: '{"small":true}' }, 'a short payload has one part')
    const [binary] = await read(
      `gatehouse://events/${await send(base, Uint8Array.of(0xff))}/payload/1`,
    )
    t.match(binary, { mimeType: 'application/octet-stream', blob: '/w==' })
  })

  // All else is the same on both.
  if (backend !== postgres) return

  await t.test(
    'the template is listed; URIs without a part of a payload are refused',
    async (t) => {
      const listed = await modern(endpoint, 'resources/templates/list')
      const uriTemplate = 'gatehouse://events/{id}/payload/{part}'
      t.match(listed.json(), { result: { resourceTemplates: [{ uriTemplate }] } })
      const id = await send(base, 'x'.repeat(MIB))
      const refused = [
        `${id}/payload/2`,
        `${id}/payload/0`,
        `${id}/payload/01`,
        `${id}/payload/-1`,
        `${id}/payload/1.5`,
        `${id}/payload/99999999999`,
        `${id}/payload/`,
        `${id}/payload`,
        `${id}/payload/1/`,
        `${id}/payload/1#notice`,
        `0/payload/1`,
        `${'9'.repeat(15)}/payload/1`,
        `${'9'.repeat(40)}/payload/1`,
        `${id}/headers/1`,
        `%31/payload/1`,
      ]
      for (const path of refused) {
        const uri = `gatehouse://events/${path}`
        const answer = await modern(endpoint, 'resources/read', { uri })
        t.match(answer.json(), { error: { code: -32602, data: { uri } } }, path)
      }
    },
  )

  await t.test('no link for protocol version 2025-03-26, which has none', async (t) => {
    const id = await send(base, 'x'.repeat(MIB))
    const call = { name: 'get_webhook_event', arguments: { id } }
    const types = async (version: string | undefined): Promise<readonly string[]> => {
      const headers: Record<string, string> = version ? { 'MCP-Protocol-Version': version } : {}
      const { result } = (await legacy(endpoint, 'tools/call', call, headers)).json<{
        result: { content: readonly { type: string }[] }
      }>()
      return result.content.map(({ type }) => type)
    }
    t.same(await types(undefined), ['text', 'text'])
    t.same(await types('2025-03-26'), ['text', 'text'])
    t.same(await types('2025-06-18'), ['text', 'text', 'resource_link'])
    t.same(await types('2025-11-25'), ['text', 'text', 'resource_link'])
  })
})
