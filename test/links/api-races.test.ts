import { t } from 'tap'
import type { Test } from 'tap'
import type { Api } from '../helpers/api.ts'
import { backends, eachBackend } from '../helpers/backends.ts'
import { makeLink, refuses, startLinks } from '../helpers/links-setup.ts'
import type { Link } from '../helpers/links-setup.ts'
import { noFailureIn } from '../helpers/outage-setup.ts'

type Tags = { readonly tags: readonly { slug: string; link_count: number }[] }

await eachBackend(t, 'calls at one time', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const ann = await links.user('ann')
  const bob = await links.user('bob')
  const root = await links.user('root', { admin: true })

  await t.test('50 creates of one slug: one 201 and forty-nine 409', async (t) => {
    for (const round of [1, 2, 3]) await oneWins(t, [ann.api, bob.api], `race-${round}`, root.api)
  })

  await t.test('PUTs of one link: the last one stands, whole', async (t) => {
    const link = await makeLink(ann, 'written', { tags: ['w-0'] })
    const path = `/links/${link.id}`
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        ann.api<Link>('PUT', path, {
          ...{ url: `http://w${n}/`, title: `w-${n}`, tags: [`w-${n}`, 'w-all'] },
          visibility: n % 2 === 0 ? 'public' : 'private',
        }),
      ),
    )
    t.same(new Set(answers.map(({ status }) => status)), new Set([200]))
    for (const { json } of answers) whole(t, json)
    const now = (await ann.api<Link>('GET', path)).json
    t.ok(
      answers.find(({ json }) => json.title === now.title),
      'it is one of them',
    )
    whole(t, now)
    t.same(await tagsOf(root.api, 'w-'), { [now.title]: 1, 'w-all': 1 }, 'counted once')
    const seen = now.visibility === 'public' ? { [now.title]: 1, 'w-all': 1 } : {}
    t.same(await tagsOf(bob.api, 'w-'), seen, 'as everybody sees it')
  })

  await t.test('PUT, DELETE, owners and shares of one link at once', async (t) => {
    for (let round = 0; round < 8; round++) {
      const link = await makeLink(ann, 'torn', { tags: ['torn'] })
      const path = `/links/${link.id}`
      const calls = [
        ...[1, 2, 3].map(
          (n) => () => ann.api('PUT', path, { url: `http://${n}/`, tags: ['torn'] }),
        ),
        () => ann.api('POST', `${path}/owners`, { email: bob.email }),
        () => ann.api('DELETE', `${path}/owners/${bob.id}`),
        () => root.api('POST', `${path}/shares`, { email: bob.email }),
        () => root.api('DELETE', `${path}/shares/${bob.id}`),
        () => bob.api('PUT', path, { url: 'http://bob/', tags: ['torn'] }),
        () => ann.api('DELETE', path),
        () => root.api('DELETE', path),
      ]
      const turned = [...calls.slice(round), ...calls.slice(0, round)]
      const answers = await Promise.all(turned.map((call) => call()))
      const statuses = answers.map(({ status }) => status)
      const odd = statuses.filter((status) => ![200, 201, 204, 403, 404].includes(status))
      t.same(odd, [], `each answer is one of some order: ${statuses.join(' ')}`)
      refuses(t, await ann.api('GET', path), 404, 'NOT_FOUND')
      t.same(await tagsOf(root.api, 'torn'), {}, 'no tag is left')
    }
  })

  await t.test('one owner or share added by many at once is added once', async (t) => {
    const link = await makeLink(ann, 'crowded')
    for (const [what, code] of [
      ['owners', 'DUPLICATE_OWNER'],
      ['shares', 'DUPLICATE_SHARE'],
    ] as const) {
      const path = `/links/${link.id}/${what}`
      const email = bob.email
      const many = (call: () => ReturnType<Api>) => Promise.all(Array.from({ length: 12 }, call))
      const added = await many(() => ann.api('POST', path, { email }))
      const [ok, refused] = split(added, 201)
      t.same([ok.length, refused.length], [1, 11], `POST …/${what}`)
      for (const answer of refused) refuses(t, answer, 409, code)
      const removed = await many(() => ann.api('DELETE', `${path}/${bob.id}`))
      const [gone, none] = split(removed, 204)
      t.same([gone.length, none.length], [1, 11], `DELETE …/${what}/{uid}`)
      for (const answer of none) refuses(t, answer, 404, 'NOT_FOUND')
    }
  })

  await t.test('a co-owner who is removed meanwhile can’t write any more', async (t) => {
    const link = await makeLink(ann, 'parted')
    const path = `/links/${link.id}`
    for (let round = 0; round < 5; round++) {
      await ann.api('POST', `${path}/owners`, { email: bob.email })
      const writes = Array.from({ length: 8 }, (_, n) => async () => {
        const title = `r${round}-${n}`
        return { title, answer: await bob.api<Link>('PUT', path, { url: 'http://bob/', title }) }
      })
      const removal = ann.api('DELETE', `${path}/owners/${bob.id}`)
      const written = await Promise.all(writes.map((write) => write()))
      t.equal((await removal).status, 204)
      const now = (await ann.api<Link>('GET', path)).json
      for (const { answer } of written) {
        if (answer.status !== 200) refuses(t, answer, 403, 'FORBIDDEN')
        else t.equal(answer.json.owners.length, 2, 'who wrote was an owner at that moment')
      }
      const last = written.find(({ title }) => title === now.title)
      if (last !== undefined) t.equal(last.answer.status, 200, 'no refused write is to be seen')
      refuses(t, await bob.api('PUT', path, { url: 'http://bob/' }), 403, 'FORBIDDEN')
    }
  })

  await t.test('links that lead to each other are never both made', async (t) => {
    const own = (slug: string) => `${links.base}/${slug}`
    for (let round = 0; round < 5; round++) {
      const [one, two] = [`loop-${round}-a`, `loop-${round}-b`]
      const answers = await Promise.all([
        ann.api('POST', '/links', { slug: one, url: own(two) }),
        bob.api('POST', '/links', { slug: two, url: own(one) }),
      ])
      const [made, refused] = split(answers, 201)
      t.equal(made.length, 1)
      for (const answer of refused) refuses(t, answer, 400, 'INVALID_URL')
    }
  })
  noFailureIn(t, links.server)
})

await t.test('50 creates of one slug on two servers', async (t) => {
  const [, postgres] = backends
  const first = await startLinks(t, postgres)
  const second = await startLinks(t, postgres, first.env)
  const ann = await first.user('ann')
  const root = await first.user('root', { admin: true })
  for (const round of [1, 2, 3]) {
    await oneWins(t, [ann.api, second.api(ann.token)], `race-${round}`, root.api)
  }
  for (const { server } of [first, second]) noFailureIn(t, server)
})

async function oneWins(t: Test, apis: readonly Api[], slug: string, admin: Api): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, n) => {
      const api = apis[n % apis.length] ?? admin
      return api<Link>('POST', '/links', {
        slug,
        url: `http://w${n}/`,
        tags: [slug, `${slug}-${n}`],
      })
    }),
  )
  const [made, refused] = split(answers, 201)
  t.same([made.length, refused.length], [1, 49])
  for (const answer of refused) {
    refuses(t, answer, 409, 'SLUG_CONFLICT', { error: 'slug already taken' })
  }
  const [winner] = made
  const now = await admin<Link>('GET', `/links/${winner?.json.id}`)
  t.same(now.json, winner?.json, 'the one that was told is the one that is there')
  const tags = Object.fromEntries((winner?.json.tags ?? []).map((tag) => [tag, 1]))
  t.same(await tagsOf(admin, slug), tags, 'and nothing of the others')
}

/** A link all of whose fields come from one and the same PUT. */
function whole(t: Test, { url, title, tags, visibility }: Link): void {
  const n = title.slice(2)
  const wanted = { url: `http://w${n}/`, tags: [`w-${n}`, 'w-all'].toSorted() }
  t.same({ url, tags }, wanted, title)
  t.equal(visibility, Number(n) % 2 === 0 ? 'public' : 'private')
}

function split<A extends { readonly status: number }>(answers: readonly A[], status: number) {
  const good = answers.filter((answer) => answer.status === status)
  return [good, answers.filter((answer) => answer.status !== status)] as const
}

/** The counted tags that begin so. */
async function tagsOf(api: Api, prefix: string): Promise<Readonly<Record<string, number>>> {
  const { json } = await api<Tags>('GET', '/tags?limit=200')
  const rows = json.tags.filter(({ slug }) => slug.startsWith(prefix))
  return Object.fromEntries(rows.map(({ slug, link_count }) => [slug, link_count]))
}
