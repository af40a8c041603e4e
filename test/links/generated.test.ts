import { t } from 'tap'
import { openDatabase } from '../../db/open.ts'
import { createLog } from '../../kernel/log.ts'
import { createGenerated, generateSlug } from '../../services/links/links/generate.ts'
import { withoutGroups } from '../../services/links/users/groups.ts'
import { ensureUser } from '../../services/links/users/users.ts'
import { backends } from '../helpers/backends.ts'
import {
  HTMX,
  leadsTo,
  makeLink,
  NAVIGATION,
  pageUser,
  startPages,
  type Link,
} from '../helpers/links.ts'
import { refuses } from '../helpers/refusals.ts'
import { transcript } from '../helpers/secrets.ts'

const [, postgres] = backends
const NAME = /^[2-9bcdfghjkmnpqrstvwxyz]{7}$/
const url = 'https://docs.test/'

await t.test('a link without a name gets one that is made up', async (t) => {
  const links = await startPages(t, postgres)
  const ann = await pageUser(links, 'ann')
  const made = await ann.api<Link>('POST', '/links?generate=true', { url, title: 'Docs' })
  t.match(made, { status: 201, json: { slug: NAME, url, title: 'Docs' } })
  t.equal(await leadsTo(links.base, `/${made.json.slug}`), url)
  const chosen = await ann.api<Link>('POST', '/links?generate=true', { url, slug: 'chosen' })
  t.match(chosen, { status: 201, json: { slug: 'chosen' } }, 'unless it has one')

  const form = await ann.post('/-/new?generate=true', { slug: ' ', url }, NAVIGATION)
  t.equal(form.status, 303)
  const id = form.headers.location?.split('/').at(-1)
  t.match((await ann.api<Link>('GET', `/links/${id}`)).json, { slug: NAME })
  t.match((await ann.get('/-/new')).text, 'action="/-/new?generate=true"')

  const missing = [400, 'BAD_REQUEST', /^slug is required and must be a string$/] as const
  refuses(t, await ann.api('POST', '/links', { url }), missing, 'not asked for')
  refuses(t, await ann.api('POST', '/links?generate=false', { url }), missing)
  refuses(t, await ann.api('POST', '/links?generate=maybe', { url }), [400, 'BAD_REQUEST'])
  const twice = await ann.api('POST', '/links?generate=true&generate=true', { url })
  refuses(t, twice, [400, 'BAD_REQUEST'])
  const reader = links.api(await links.token(ann.email, { scope: 'read' }))
  refuses(t, await reader('POST', '/links?generate=true', { url }), [403, 'FORBIDDEN'])
  await makeLink(ann, 'taken')
  const taken = { url, aliases: ['taken'] }
  refuses(t, await ann.api('POST', '/links?generate=true', taken), [409, 'SLUG_CONFLICT'])
  const refused = await ann.post('/-/new?generate=true', { slug: '', url: 'x y' }, HTMX)
  t.match(refused, { status: 400, text: 'id="link-url-refused"' })
})

await t.test('a name that is taken is made up again, five times at most', async (t) => {
  const env = await postgres.env(t)
  const log = createLog(
    (text) => transcript('log', text, 'generated'),
    () => new Date(),
  )
  const opened = await openDatabase({ url: env['DATABASE_URL'], dataDirectory: '' }, log)
  t.teardown(() => opened[Symbol.asyncDispose]())
  const { db } = opened
  const now = new Date()
  const actor = { kind: 'command' } as const
  const ann = withoutGroups(await ensureUser({ db, actor }, 'ann@example.com', 'user', now))
  const parts = { db, log, ownHosts: () => false, forget: () => undefined }
  const input = { url, title: '', description: '', tags: [] }
  const drawn: number[] = []
  function drawing(...bytes: readonly number[]) {
    drawn.length = 0
    function random(size: number) {
      drawn.push(size)
      return Buffer.alloc(size, bytes[drawn.length - 1] ?? bytes.at(-1))
    }
    return createGenerated({ ...parts, random }, ann, input, now)
  }
  t.equal((await drawing(0)).slug, '2222222')
  t.equal((await drawing(0, 0, 9)).slug, 'cccccccc'.slice(1), 'the third')
  await t.rejects(drawing(0), { code: 'SLUG_CONFLICT', status: 409 })
  t.equal(drawn.length, 5)
})

t.test('names are drawn evenly', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at))
  let from = 0
  const counts = new Map<string, number>()
  // 252 of 256 bytes are letters, so 9 rounds of 28 letters are 36 names.
  for (let name = 0; name < 36; name++) {
    const slug = generateSlug((size) => {
      const drawn = bytes.subarray(from, from + 7)
      from += 7
      return Buffer.concat([drawn, Buffer.alloc(size - 7, 255)])
    })
    for (const letter of slug) counts.set(letter, (counts.get(letter) ?? 0) + 1)
  }
  t.same([...new Set(counts.values())], [9])
  t.equal(counts.size, 28)
})
