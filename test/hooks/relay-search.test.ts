import { t } from 'tap'
import type { Test } from 'tap'
import { openPeer, refusedUpgrade } from '../fixtures/forward-setup.ts'
import type { Query, RelayEvent } from '../fixtures/forward-setup.ts'
import { onPostgres } from '../helpers/backends.ts'
import { addProvider, post, startHooks } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'

const target = 'http://localhost:3000/hook'
const NEXT = { type: 'next' }

/** Ids of the events that a forwarder is given up to `last`, each answered as delivered. */
async function given(t: Test, base: string, query: Query, last: number): Promise<number[]> {
  const peer = await openPeer(t, base, { target, since: '0', ...query })
  t.match(await peer.next(), { type: 'ready' })
  const ids: number[] = []
  while (ids.at(-1) !== last) {
    peer.send(NEXT)
    const { id } = await peer.next<RelayEvent>()
    await peer.next()
    ids.push(id)
    peer.send({ type: 'result', id, status: 200, ms: 1, detail: null, done: true })
  }
  peer.close()
  await peer.closed
  return ids
}

await onPostgres(t, 'what of the payload is wanted', async (t: Test, backend) => {
  const { base, env, server } = await startHooks(t, backend)
  await addProvider(base, 'lan', { open: true })
  await addProvider(base, 'other', { open: true })
  const send = async (body: string, name = 'lan'): Promise<number> =>
    (await post(base, `generic/${name}`, body, { 'X-Event-Type': 'note' })).json<Ack>().id
  const first = await send('{"data":{"object":{"id":"evt_1"}}}')
  const other = await send('{"data":{"object":{"id":"evt_1"}}}', 'other')
  const longer = await send('{"data":{"object":{"id":"evt_10"}}}')
  const plain = await send('evt_1 stands here too')
  const ended = await send('{"data":{"object":{"id":"evt_1"}},"text":"100%, the end"}')

  await t.test('text, a member of the JSON, and both with the other filters', async (t) => {
    const cases: readonly (readonly [Query, readonly number[]])[] = [
      [{ text: 'evt_1' }, [first, other, longer, plain, ended]],
      [{ text: '%' }, [ended]],
      [{ json: 'data.object.id=evt_1' }, [first, other, ended]],
      [{ json: 'data.object.id=evt_1', provider: 'generic:lan' }, [first, ended]],
      [{ json: 'data.object.id=evt_1', text: 'the end', event_type: 'note' }, [ended]],
    ]
    for (const [query, ids] of cases) {
      const name = JSON.stringify(query)
      t.same(await given(t, base, { name, ...query }, ended), ids, name)
    }
  })

  await t.test('what cannot be searched for is refused', async (t) => {
    const bad: readonly (readonly [Query, RegExp])[] = [
      [{ json: 'data.object' }, /json must be path=value/],
      [{ json: 'a..b=1' }, /json must be path=value/],
      [{ text: 'x'.repeat(501) }, /text may have 500 characters at most/],
      [{ json: `a=${'x'.repeat(499)}` }, /json may have 500 characters at most/],
    ]
    for (const [query, detail] of bad) {
      const { status, text } = await refusedUpgrade(base, { name: 'bad', target, ...query })
      t.match({ status, problem: JSON.parse(text) }, { status: 400, problem: { detail } })
    }
  })

  await t.test('a NUL character is a character that nobody has', async (t) => {
    for (const field of ['provider', 'event_type', 'text']) {
      const query = { name: `nul ${field}`, target, since: '0', [field]: '\0' }
      const peer = await openPeer(t, base, query)
      t.match(await peer.next(), { type: 'ready' })
      peer.send(NEXT)
      const newer = await openPeer(t, base, query)
      t.match(await newer.next(), { type: 'ready', known: true })
      t.match(await peer.closed, { code: 4409 }, `${field}: nothing else has ended it`)
      t.equal(peer.waiting(), 0)
    }
  })

  await t.test('an event behind large ones', async (t) => {
    const large = [await send('x'.repeat(9_000_000)), await send('y'.repeat(9_000_000))]
    const behind = await send('{"data":{"object":{"id":"evt_1"}}}')
    const [, second = 0] = large
    const [all, one] = [{ text: 'evt_1' }, { text: 'yyy' }]
    t.same(await given(t, base, { name: 'behind', ...all, since: String(large[0]) }, behind), [
      behind,
    ])
    t.same(await given(t, base, { name: 'large', ...one }, second), [second])
  })

  await t.test('an event far behind many that do not match', async (t) => {
    await server.stop()
    // Rows as the receiver stores them, so many that a search takes several steps.
    await backend.query(
      env,
      `insert into hooks.events (provider, trust_mode, verified, headers, payload, body_hash, received_at)
       select 'generic:lan', 'open', false, '{}', convert_to('{"n":' || n || '}', 'UTF8'), '\\x00', now()
         from generate_series(1, 7000) as n`,
    )
    const again = await startHooks(t, backend, env)
    await addProvider(again.base, 'late', { open: true })
    const answer = await post(again.base, 'generic/late', '{"n":"needle"}')
    const { id } = answer.json<Ack>()
    const query = { name: 'far', json: 'n=needle', since: String(ended + 1) }
    t.same(await given(t, again.base, query, id), [id])
    // From here on the second step begins with n = 3000.
    const edge = { name: 'edge', text: '"n":300', since: String(id - 6001) }
    const around = Array.from({ length: 10 }, (_, n) => id - 4001 + n)
    t.same(await given(t, again.base, edge, id - 3992), around, 'no step leaves one out')
  })
})
