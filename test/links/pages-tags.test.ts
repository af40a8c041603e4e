import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import {
  HTMX,
  NAVIGATION,
  pageUser,
  slugsIn,
  startPages,
  visitorAt,
} from '../helpers/links-pages.ts'
import type { PageUser } from '../helpers/links-pages.ts'
import { makeLink } from '../helpers/links-setup.ts'
import { listedAll, nextOf } from '../helpers/links-other-pages.ts'

/** Tags and the counts beside them, as `/-/tags` has them. */
async function counts(who: PageUser): Promise<Readonly<Record<string, number>>> {
  const { text } = await who.get('/-/tags')
  const rows = [...text.matchAll(/data-slug="([^"]*)".*?class="number">\s*(\d+)/gs)]
  return Object.fromEntries(rows.map(([, slug = '', count]) => [slug, Number(count)]))
}

await onPostgres(t, 'tags of what one may see', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const eve = await pageUser(links, 'eve', { admin: true })
  await makeLink(ann, 'open', { tags: ['both', 'public-tag'], title: '<b>"quoted"</b>' })
  await makeLink(ann, 'ann-own', { visibility: 'private', tags: ['both', 'hers'] })
  const shared = await makeLink(ann, 'given', { visibility: 'secure', tags: ['both', 'given-tag'] })
  await ann.api('POST', `/links/${shared.id}/shares`, { email: bob.email })

  await t.test('counts and lists', async (t) => {
    t.same(await counts(ann), { both: 3, 'given-tag': 1, hers: 1, 'public-tag': 1 })
    t.same(await counts(bob), { both: 2, 'given-tag': 1, 'public-tag': 1 })
    t.same(await counts(eve), await counts(ann), 'an admin sees all')
    t.same(slugsIn((await ann.get('/-/tags/both')).text), ['ann-own', 'given', 'open'])
    t.same(slugsIn((await bob.get('/-/tags/both')).text), ['given', 'open'])
    t.same(slugsIn((await eve.get('/-/tags/hers')).text), ['ann-own'])
  })

  await t.test('where a row leads: to its page who may read it, else to its preview', async (t) => {
    const { text } = await bob.get('/-/tags/both')
    t.match(text, `href="/-/links/${shared.id}"`)
    t.match(text, 'href="/open+"')
    for (const [who, path] of [
      [ann, '/-/tags/both'],
      [eve, '/-/tags/public-tag'],
    ] as const) {
      const page = await who.get(path)
      const hrefs = [...page.text.matchAll(/href="(\/-\/links\/[^"]+)"/g)].map(([, href]) => href)
      t.ok(hrefs.length > 0)
      for (const href of hrefs) t.equal((await who.get(href ?? '')).status, 200)
    }
    t.match(text, '&lt;b&gt;&quot;quoted&quot;&lt;/b&gt;', 'a title is text')
    t.notMatch(text, '<b>')
  })

  await t.test('a tag of others is like one that does not exist', async (t) => {
    const hidden = '/-/tags/hers'
    const asked = ['/-/tags/no-such-tag', '/-/tags/%3Cscript%3Ealert(1)', '/-/tags/HERS', hidden]
    for (const headers of [NAVIGATION, HTMX, {}]) {
      const answers = await Promise.all(asked.map((path) => bob.get(path, headers)))
      const expected = answers.at(-1)
      for (const [at, answer] of answers.entries()) {
        t.equal(answer.status, 404, String(asked[at]))
        t.ok(expected !== undefined && answer.body.equals(expected.body), 'the same bytes')
        t.same(
          { ...answer.headers, 'x-request-id': '', date: '' },
          { ...expected?.headers, 'x-request-id': '', date: '' },
        )
        t.notMatch(answer.text, /hers|no-such|alert\(1/i, 'nothing of the request')
      }
    }
    const page = await bob.get(hidden, NAVIGATION)
    t.match(page.text, /<!doctype html>[\s\S]*Tag not found\./)
    t.match((await bob.get(hidden)).json(), { error: 'tag not found', code: 'NOT_FOUND' })
    const further = await bob.get(`${hidden}?cursor=${cursor('a')}`)
    t.equal(further.status, 404, 'on a further page too')
  })

  await t.test('a bad limit and a bad cursor', async (t) => {
    for (const query of [
      'limit=0',
      'limit=x',
      'cursor=%00',
      'cursor=WzFd',
      `cursor=${cursor('\0')}`,
    ]) {
      for (const path of ['/-/tags', '/-/tags/both', '/-/tags/hers']) {
        const answer = await bob.get(`${path}?${query}`)
        t.equal(answer.status, 400, `${path}?${query}`)
        t.match(answer.json(), { code: 'BAD_REQUEST' })
      }
    }
    t.match(await bob.get('/-/tags?limit=0', NAVIGATION), { status: 400, text: /<!doctype/ })
    t.equal((await bob.post('/-/tags')).status, 405)
    t.equal((await bob.get('/-/tags/a%00b')).status, 404)
    t.equal((await bob.get('/-/tags/%zz')).status, 404)
  })

  await t.test('who is not signed in sees no tag', async (t) => {
    for (const path of ['/-/tags', '/-/tags/both', '/-/tags/none']) {
      const page = await visitorAt(links.base, '').get(path, NAVIGATION)
      t.equal(page.status, 403, path)
      t.match(page.text, /You are not signed in/)
      t.notMatch(page.text, /both|public-tag|href="\/-\/tags/)
    }
  })
})

await onPostgres(t, 'pages of tags', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  t.match((await ann.get('/-/tags')).text, /No link that you may see has a tag/)
  const tags = Array.from({ length: 60 }, (_, at) => `t-${String(at).padStart(2, '0')}`)
  for (let at = 0; at < 60; at += 20) {
    await makeLink(ann, `with-${at}`, { tags: ['all', ...tags.slice(at, at + 19)] })
    await makeLink(ann, `more-${at}`, { tags: ['all', tags[at + 19]] })
  }
  const all = ['all', ...tags]
  t.same(await listedAll(ann, '/-/tags', 'tags'), all)
  t.same(await listedAll(ann, '/-/tags?limit=7', 'tags'), all)
  const first = await ann.get('/-/tags?limit=7')
  t.match(nextOf(first.text, 'tags'), /limit=7&cursor=/, 'the next page is as long')
  const fragment = await ann.get('/-/tags?limit=7', HTMX)
  t.notMatch(fragment.text, /<!doctype/)
  t.equal(fragment.headers['vary'], 'HX-Request')
  t.same(slugsIn(fragment.text), slugsIn(first.text))
  const six = ['more-0', 'more-20', 'more-40', 'with-0', 'with-20', 'with-40']
  t.same(await listedAll(ann, '/-/tags/all?limit=4', 'tagged'), six)
  t.same(await listedAll(ann, '/-/tags/all?limit=3', 'tagged'), six)
})

function cursor(after: string): string {
  return Buffer.from(JSON.stringify([after])).toString('base64url')
}
