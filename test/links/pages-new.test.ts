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
import type { Headers } from '../helpers/links-pages.ts'
import { makeLink } from '../helpers/links-setup.ts'
import type { Link } from '../helpers/links-setup.ts'

const CROSS_SITE = { 'sec-fetch-site': 'cross-site' }

await onPostgres(t, 'a link is made and edited by its form', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const { id: taken } = await makeLink(bob, 'taken', { visibility: 'secure' })

  await t.test('the form says who sees a private link', async (t) => {
    t.match((await ann.get('/-/new')).text, 'it is listed to owners, recipients and admins')
  })

  await t.test('what is refused stays in the form, beside why', async (t) => {
    const good = { slug: 'good', url: 'https://good.test/' }
    const tags = Array.from({ length: 21 }, (_, at) => `t${at}`).join(',')
    const cases: readonly (readonly [string, Headers, number])[] = [
      ['slug', { ...good, slug: 'x' }, 400],
      ['slug', { ...good, slug: '<b>' }, 400],
      ['slug', { ...good, slug: 'admin' }, 400],
      ['slug', { ...good, slug: 'taken' }, 409],
      ['slug', { ...good, slug: '' }, 400],
      ['url', { ...good, url: '' }, 400],
      ['url', { ...good, url: 'javascript:alert(1)' }, 400],
      ['url', { ...good, url: 'data:text/html,<script>' }, 400],
      ['url', { ...good, url: 'https://user:pass@good.test/' }, 400],
      ['url', { ...good, url: `${links.base}/good` }, 400],
      ['title', { ...good, title: 'x'.repeat(201) }, 400],
      ['description', { ...good, description: 'x'.repeat(2_001) }, 400],
      ['tags', { ...good, tags: 'ok, ä' }, 400],
      ['tags', { ...good, tags }, 400],
    ]
    for (const [field, fields, status] of cases) {
      const what = `${field} ${fields[field]?.slice(0, 30)}`
      const fragment = await ann.post('/-/new', fields, HTMX)
      t.equal(fragment.status, status, what)
      t.match(fragment.text, /^<form\s+id="link-form"/)
      t.match(fragment.text, `id="link-${field}-refused"`)
      t.equal(fragment.text.match(/aria-invalid/g)?.length, 1, 'at its field alone')
      t.match(fragment.text, `value="${escaped(fields['url'] ?? '')}"`, 'what was typed stays')
      const page = await ann.post('/-/new', fields, NAVIGATION)
      t.equal(page.status, status)
      t.match(page.text, /^<!doctype html>/)
    }
    const both = await ann.post('/-/new', { slug: '-', url: 'nonsense' }, HTMX)
    t.equal(both.text.match(/aria-invalid/g)?.length, 2, 'all that is wrong at once')
    const bad = await ann.post('/-/new', { ...good, visibility: 'all' }, HTMX)
    t.equal(bad.status, 400)
    t.equal((await ann.post('/-/new', good, CROSS_SITE)).status, 403)
    t.equal((await visitorAt(links.base, '').post('/-/new', good)).status, 403)
    t.equal((await ann.post('/-/new', '{}', { 'content-type': 'application/json' })).status, 415)
    t.equal((await ann.post('/-/new', `slug=${'a'.repeat(70_000)}`)).status, 413)
    t.same(slugsIn((await ann.get('/-/')).text), [], 'nothing was made')
  })

  await t.test('made: a browser goes to its page, by either way', async (t) => {
    const fields = {
      slug: ' Docs ',
      url: ' https://docs.test/{1} ',
      title: 'Docs',
      description: 'one\r\ntwo',
      tags: 'Wiki, my team,, wiki',
      visibility: 'private',
      append_path: 'true',
    }
    const plain = await ann.post('/-/new', fields, NAVIGATION)
    t.equal(plain.status, 303)
    const id = plain.headers.location?.split('/').at(-1) ?? ''
    const { json } = await ann.api<Link>('GET', `/links/${id}`)
    t.match(json, {
      slug: 'docs',
      url: 'https://docs.test/{1}',
      title: 'Docs',
      description: 'one\ntwo',
      visibility: 'private',
      append_path: true,
      owners: [{ email: ann.email, is_primary: true }],
    })
    t.same(json.tags, ['my-team', 'wiki'])
    const htmx = await ann.post('/-/new', { slug: 'two', url: 'https://two.test/' }, HTMX)
    t.equal(htmx.status, 204)
    t.match(htmx.headers['hx-redirect'], /^\/-\/links\/[0-9a-f-]{36}$/)

    const edit = `/-/links/${id}/edit`
    t.match((await ann.get(edit)).text, /value="my-team, wiki"/)
    const bad = await ann.post(edit, { ...fields, url: 'ftp://x/', title: 'Kept' }, HTMX)
    t.equal(bad.status, 400)
    t.match(bad.text, /id="link-url-refused"[^]*value="Kept"/)
    t.same((await ann.api('GET', `/links/${id}`)).json, json, 'nothing was changed')
    const saved = await ann.post(edit, { url: 'https://other.test/', slug: 'ignored' })
    t.equal(saved.status, 303)
    t.match((await ann.api('GET', `/links/${id}`)).json, {
      slug: 'docs',
      url: 'https://other.test/',
      title: '',
      tags: [],
      visibility: 'private',
      append_path: false,
    })
  })

  await t.test('the live check tells what it may', async (t) => {
    const said = async (slug: string): Promise<string> =>
      (await ann.get(`/-/slug?slug=${encodeURIComponent(slug)}`, HTMX)).text
    t.match(await said('free-one'), /free-one is free/)
    t.match(await said('FREE'), /free is free/)
    t.match(await said('users'), /reserved/)
    t.match(await said('a'), /2 to 64/)
    t.match(await said('"><script>'), /2 to 64/)
    t.equal(await said(''), '')
    const secret = await said('taken')
    t.match(secret, /taken is taken/)
    t.notMatch(secret, new RegExp(`${taken}|href|secure|bob`))
    t.match(await said('docs'), /docs is taken[^]*href="\/-\/links\//)
  })
})

/** Text as it stands in an attribute. */
function escaped(text: string): string {
  return text.replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
