import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { insertLinks, leadsTo, startLinks } from '../helpers/links.ts'
import { walksWhileOthersWrite } from '../links/pagination-walk.ts'

const [, postgres] = backends

// The embedded engine syncs each write: there, a write beside every eighth page is enough.
const EVERY = { postgres: 2, embedded: 8 }

await eachBackend(t, 'walks over 10,000 rows while others write', (t: Test, backend) =>
  walksWhileOthersWrite(t, backend, { rows: 10_000, limit: 199, every: EVERY[backend.name] }),
)

await t.test('the resolver has more links in memory than anybody uses', async (t) => {
  const links = await startLinks(t, postgres)
  const slugs = Array.from({ length: 10_200 }, (_, n) => `many-${n}`)
  await insertLinks(
    links,
    postgres,
    slugs.map((slug) => ({ slug })),
  )
  const wrong: string[] = []
  const queue = slugs.values()
  async function visitRest(): Promise<void> {
    for (const slug of queue) {
      if ((await leadsTo(links.base, `/${slug}`)) !== `https://${slug}.test/`) wrong.push(slug)
    }
  }
  await Promise.all(Array.from({ length: 8 }, visitRest))
  t.same(wrong, [])
  const { text } = await request(`${links.base}/metrics`)
  t.match(text, /^gatehouse_links_cached 10200$/m)
  const bytes = Number(/^gatehouse_links_cached_bytes (\d+)$/m.exec(text)?.[1])
  t.ok(bytes < 6 * 2 ** 20, `${bytes} bytes of 32 MiB`)
})
