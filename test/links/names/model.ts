import assert from 'node:assert'
import fc from 'fast-check'
import type { Test } from 'tap'
import type { Backend } from '../../helpers/backends.ts'
import { startLinks, type Link } from '../../helpers/links.ts'
import { newSeed } from '../../helpers/until.ts'

const PEOPLE = ['ann', 'bob', 'cyd', 'root'] as const
const OPERATIONS = [
  ...(['create', 'put', 'delete', 'restore', 'handOver'] as const),
  ...(['addOwner', 'addShare', 'removeOwner', 'removeShare'] as const),
]
const NONE = '00000000-0000-4000-8000-000000000000'

type Person = (typeof PEOPLE)[number]
/** A link as the contracts describe it; people by their names, the primary owner first. */
type Known = {
  id: string
  slug: string
  tags: readonly string[]
  visibility: string
  owners: readonly Person[]
  shares: readonly Person[]
}
type Model = { links: Known[]; deleted: Known[] }

const who = fc.constantFrom(...PEOPLE)
const step = fc.record({
  // An admin may do anything, so that more comes of it.
  by: fc.oneof(who, fc.constant('root' as const)),
  op: fc.constantFrom('create' as const, 'addOwner' as const, ...OPERATIONS),
  slug: fc.constantFrom('aa', 'bb'),
  whom: who,
  tags: fc.subarray(['red', 'blue']),
  visibility: fc.constantFrom('public', 'private', 'secure'),
  viewer: who,
})
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

/** What a step is answered; the model is then as the service must be. */
function play(model: Model, one: Step, slug: string, id: string) {
  const { by, op, whom, tags, visibility } = one
  const isTaken = model.links.some((link) => link.slug === slug)
  const mayWrite = ({ owners }: Known) => by === 'root' || owners.includes(by)
  if (op === 'create') return isTaken ? 409 : 201
  if (op === 'restore') {
    const link = model.deleted.find((known) => known.id === id)
    if (link === undefined) return 404
    if (!mayWrite(link)) return 403
    if (isTaken) return 409
    model.deleted = model.deleted.filter((known) => known !== link)
    model.links.push(link)
    return 200
  }
  const link = model.links.find((known) => known.id === id)
  if (link === undefined) return 404
  if (!mayWrite(link)) return 403
  const people = op.endsWith('Share') ? link.shares : link.owners
  switch (op) {
    case 'put':
      Object.assign(link, { tags, visibility })
      return 200
    case 'delete':
      model.links = model.links.filter((known) => known !== link)
      model.deleted.push(link)
      return 204
    case 'handOver':
      if (by !== 'root' && link.owners[0] !== by) return 403
      link.owners = [whom, ...link.owners.filter((name) => name !== whom)]
      return 200
    case 'addOwner':
    case 'addShare':
      if (people.includes(whom)) return 409
      if (op === 'addShare' && link.owners[0] === whom) return 409
      Object.assign(link, { [op === 'addOwner' ? 'owners' : 'shares']: [...people, whom] })
      return 201
    default: {
      if (!people.includes(whom)) return 404
      if (op === 'removeOwner' && link.owners[0] === whom) return 400
      const left = people.filter((name) => name !== whom)
      Object.assign(link, { [op === 'removeOwner' ? 'owners' : 'shares']: left })
      return 204
    }
  }
}

/**
 * Random calls by owners, co-owners, recipients, strangers and admins are answered as a small model of the contracts
 * says, and lists and tags show each of them what it says. When a sequence fails, the shortest one that does is
 * shown with its seed: GATEHOUSE_TEST_SEED=… repeats it.
 */
export async function playModel(t: Test, backend: Backend, sequences: number) {
  const links = await startLinks(t, backend)
  const made = PEOPLE.map((name) => links.user(name, { admin: name === 'root' }))
  const users = new Map((await Promise.all(made)).map((user, at) => [PEOPLE[at], user]))
  let calls = 0
  let round = 0

  // Thousands of calls: with connections that are kept, and without an entry in the transcript for each.
  async function call(by: Person, method: string, path: string, body?: object) {
    calls += 1
    const authorization = `Bearer ${users.get(by)?.token}`
    const answer = await fetch(`${links.base}/api/v1${path}`, {
      method,
      headers: { authorization, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return { status: answer.status, text, json: text === '' ? {} : JSON.parse(text) }
  }

  function send({ by, op, whom, tags, visibility }: Step, slug: string, id: string) {
    const path = `/links/${id}`
    const email = `${whom}@example.com`
    const fields = { url: 'https://x.test/', tags, visibility }
    const user = users.get(whom)?.id
    const calls: Readonly<
      Record<Step['op'], readonly [method: string, at: string, body?: object]>
    > = {
      create: ['POST', '/links', { ...fields, slug }],
      put: ['PUT', path, fields],
      delete: ['DELETE', path],
      restore: ['POST', `${path}/restore`],
      handOver: ['PUT', `${path}/owner`, { email }],
      addOwner: ['POST', `${path}/owners`, { email }],
      addShare: ['POST', `${path}/shares`, { email }],
      removeOwner: ['DELETE', `${path}/owners/${user}`],
      removeShare: ['DELETE', `${path}/shares/${user}`],
    }
    return call(by, ...calls[op])
  }

  async function look(model: Model, by: Person) {
    const all = model.links.toSorted((a, b) => (a.slug < b.slug ? -1 : 1))
    const isOwn = ({ owners }: Known) => by === 'root' || owners.includes(by)
    const own = await call(by, 'GET', '/links')
    assert.deepEqual(
      own.json.links.map(({ slug, tags, visibility, owners }: Link) => {
        const [first, ...rest] = owners.map(({ email }) => email.split('@')[0])
        return { slug, tags, visibility, owners: [first, ...rest.toSorted()] }
      }),
      all.filter(isOwn).map(({ slug, tags, visibility, owners: [first, ...rest] }) => {
        return { slug, tags: tags.toSorted(), visibility, owners: [first, ...rest.toSorted()] }
      }),
      `the links of ${by}`,
    )
    const visible = all.filter(
      (link) => isOwn(link) || link.visibility === 'public' || link.shares.includes(by),
    )
    const tagged = (tag: string) => visible.filter(({ tags }) => tags.includes(tag))
    const counts = ['blue', 'red'].map((slug) => ({ slug, link_count: tagged(slug).length }))
    const { tags } = (await call(by, 'GET', '/tags')).json
    const seen = counts.filter(({ link_count }) => link_count > 0)
    assert.deepEqual(tags, seen, `the tags of ${by}`)
    const red = await call(by, 'GET', '/tags/red/links')
    const slugs = tagged('red').map(({ slug }) => slug)
    const shown = red.json.links?.map(({ slug }: Link) => slug)
    assert.deepEqual([red.status, shown], slugs.length === 0 ? [404, undefined] : [200, slugs])
  }

  const seed = newSeed()
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 20, maxLength: 40, size: 'max' }),
      async (steps) => {
        const model: Model = { links: [], deleted: [] }
        const ids = new Map<string, string>()
        round += 1
        try {
          for (const one of steps) {
            // No memory of the sequence before counts for this one.
            const slug = `s${round}-${one.slug}`
            const id = ids.get(slug) ?? NONE
            const expected = play(model, one, slug, id)
            const { status, text, json } = await send(one, slug, id)
            assert.equal(status, expected, `${JSON.stringify(one)}: ${text}`)
            if (one.op === 'create' && status === 201) {
              const { tags, visibility, by } = one
              ids.set(slug, json.id)
              model.links.push({ id: json.id, slug, tags, visibility, owners: [by], shares: [] })
            }
            await look(model, one.viewer)
          }
        } finally {
          // A sequence that fails is shortened: what it left must not count for the next one.
          for (const id of ids.values()) await call('root', 'DELETE', `/links/${id}`)
        }
      },
    ),
    { numRuns: sequences, seed },
  )
  t.comment(`${sequences} sequences, ${calls} calls, seed ${seed}`)
  t.ok(calls > sequences)
}
