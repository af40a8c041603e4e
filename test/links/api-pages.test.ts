import { t } from 'tap'
import type { Test } from 'tap'
import type { Api } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { makeLink, refuses, startLinks } from '../helpers/links-setup.ts'
import type { Link, LinksServer } from '../helpers/links-setup.ts'

type Page = { readonly links: readonly Link[]; readonly next_cursor: string | null }

await onPostgres(t, 'pages of GET /links', async (t: Test, backend) => {
  await pages(t, await startLinks(t, backend))
})

async function pages(t: Test, links: LinksServer): Promise<void> {
  const pat = await links.user('pat')
  const slugs = Array.from({ length: 203 }, (_, n) => `p-${String(n).padStart(3, '0')}`)
  for (const slug of slugs) await makeLink(pat, slug)
  const first = (await pat.api<Page>('GET', '/links')).json
  t.same(slugsOf(first), slugs.slice(0, 50), '50 when nothing is said')
  t.type(first.next_cursor, 'string')
  for (const limit of ['200', '201', '1000000', '9'.repeat(400)]) {
    const { json } = await pat.api<Page>('GET', `/links?limit=${limit}`)
    t.same(slugsOf(json), slugs.slice(0, 200), `${limit.slice(0, 9)}: 200 at most`)
  }
  t.same(await walk(pat.api, 203), slugs, 'one page of exactly all')
  t.same(await walk(pat.api, 1, 3), slugs.slice(0, 3))
  t.same(await walk(pat.api, 29), slugs, 'all of them by pages of 29')
  const exact = (await pat.api<Page>('GET', `/links?limit=3&cursor=${cursorAt(slugs[199])}`)).json
  t.same([slugsOf(exact), exact.next_cursor], [slugs.slice(200), null], 'no page after a full last')

  t.comment('a walk is stable under writes')
  const page = (await pat.api<Page>('GET', '/links?limit=100')).json
  await pat.api('DELETE', `/links/${page.links.at(-1)?.id}`)
  await makeLink(pat, 'p-000-before')
  await makeLink(pat, 'p-150-after')
  const rest = await pat.api<Page>('GET', `/links?limit=200&cursor=${page.next_cursor}`)
  t.same(
    slugsOf(rest.json),
    [...slugs.slice(100), 'p-150-after'].toSorted(),
    'nothing twice or lost',
  )

  for (const limit of ['0', '-1', '1.5', 'ten', '', '%20', '1e2', '0x10', '+5', '٣']) {
    refuses(t, await pat.api('GET', `/links?limit=${limit}`), 400, 'BAD_REQUEST', { what: limit })
  }
  const bad = [
    '',
    'x',
    '!',
    '%00',
    'bnVsbA',
    'W10',
    'WzFd',
    'e30',
    cursorAt('a\0'),
    'A'.repeat(9_000),
  ]
  for (const cursor of bad) {
    const answer = await pat.api('GET', `/links?cursor=${cursor}`)
    refuses(t, answer, 400, 'BAD_REQUEST', { what: `cursor ${cursor.slice(0, 20)}` })
  }
}

/** Every slug, page by page. */
async function walk(api: Api, limit: number, pages = Infinity): Promise<readonly string[]> {
  const slugs: string[] = []
  let cursor = ''
  for (let n = 0; n < pages; n++) {
    const { json } = await api<Page>('GET', `/links?limit=${limit}${cursor}`)
    slugs.push(...slugsOf(json))
    if (json.next_cursor === null) break
    cursor = `&cursor=${json.next_cursor}`
  }
  return slugs
}

function slugsOf({ links }: Page): readonly string[] {
  return links.map(({ slug }) => slug)
}

function cursorAt(key = ''): string {
  return Buffer.from(JSON.stringify([key, 'links'])).toString('base64url')
}
