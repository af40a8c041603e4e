import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { HTMX, NAVIGATION, makeLink, pageUser, startPages } from '../helpers/links.ts'
import type { Headers, Link, LinksServer, PageUser } from '../helpers/links.ts'
import { refuses } from '../helpers/refusals.ts'

const [, postgres] = backends
const NO_LINK = '00000000-0000-4000-8000-000000000000'
const STRONG = /^"[!#-~]+"$/

await t.test('two people who change one link', async (t: Test) => {
  const links = await startPages(t, postgres)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob', { admin: true })

  await t.test('the API: ETag and If-Match', (t) => byTheApi(t, ann, bob))
  await t.test('each change gives another ETag', (t) => tags(t, links, ann, bob))
  await t.test('at once: one of them wins', async (t) => {
    const { id } = await makeLink(ann, 'race')
    const path = `/links/${id}`
    for (let round = 0; round < 5; round++) {
      const etag = await etagOf(ann, id)
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          (n % 2 === 0 ? ann : bob).api<Link>(
            'PUT',
            path,
            { url: `http://w${n}/` },
            ifMatch(etag),
          ),
        ),
      )
      const won = answers.filter(({ status }) => status === 200)
      t.equal(won.length, 1, 'one 200')
      for (const answer of answers.filter(({ status }) => status !== 200)) {
        refuses(t, answer, [412, 'PRECONDITION_FAILED'])
      }
      t.same((await ann.api('GET', path)).json, won[0]?.json)
    }
  })
  await t.test('the form', (t) => byTheForm(t, ann, bob))
})

async function byTheApi(t: Test, ann: PageUser, bob: PageUser): Promise<void> {
  const made = await ann.api<Link>('POST', '/links', { slug: 'docs', url: 'http://one/' })
  const path = `/links/${made.json.id}`
  const { etag = '' } = made.headers
  t.match(etag, STRONG)
  const read = await bob.api('GET', path)
  t.equal(read.headers.etag, etag, 'of GET, for everybody the same')
  t.equal((await bob.api('HEAD', path)).headers.etag, etag)

  const first = await ann.api<Link>('PUT', path, { url: 'http://two/' }, ifMatch(etag))
  t.match(first, { status: 200, json: { url: 'http://two/' } })
  t.equal(first.headers.etag, await etagOf(ann, made.json.id))
  const late = await bob.api('PUT', path, { url: 'http://three/' }, ifMatch(etag))
  refuses(t, late, [412, 'PRECONDITION_FAILED'], 'PUT')
  const gone = await bob.api('DELETE', path, undefined, ifMatch(etag))
  refuses(t, gone, [412, 'PRECONDITION_FAILED'], 'DELETE')
  t.same((await ann.api('GET', path)).json, first.json, 'nothing was changed')

  const now = first.headers.etag ?? ''
  for (const wrong of ['"x"', '', 'x', now.replaceAll('"', ''), `W/${now}`, `"a", W/${now}`]) {
    const answer = await bob.api('PUT', path, { url: 'http://x/' }, ifMatch(wrong))
    refuses(t, answer, [412, 'PRECONDITION_FAILED'], JSON.stringify(wrong))
  }
  t.comment('what is wrong besides is said first, as without the header')
  const stale = ifMatch(etag)
  refuses(t, await bob.api('PUT', path, { url: '' }, stale), [400, 'INVALID_URL'])
  refuses(t, await bob.api('PUT', `/links/${NO_LINK}`, { url: 'http://x/' }, stale), [
    404,
    'NOT_FOUND',
  ])
  let current = now
  for (const header of ['*', `"other", ${now}`]) {
    const value = header.replace(now, current)
    const answer = await bob.api('PUT', path, { url: 'http://four/' }, ifMatch(value))
    t.equal(answer.status, 200, value)
    current = answer.headers.etag ?? ''
  }
  t.equal(
    (await ann.api('PUT', path, { url: 'http://five/' })).status,
    200,
    'without it as before',
  )
  const last = await etagOf(ann, made.json.id)
  t.equal((await bob.api('DELETE', path, undefined, ifMatch(last))).status, 204)
}

async function tags(t: Test, links: LinksServer, ann: PageUser, bob: PageUser): Promise<void> {
  const { id } = await makeLink(ann, 'changing')
  const path = `/links/${id}`
  const seen = new Set([await etagOf(ann, id)])
  const put = (fields: object) => () => ann.api('PUT', path, { url: 'http://x/', ...fields })
  const changes = [
    ...[{}, { title: 'T' }, { description: 'D' }, { tags: ['a'] }, { tags: ['b'] }].map(put),
    ...[{ visibility: 'secure' }, { append_path: true }, { url: 'http://y/' }].map(put),
    () => ann.api('POST', `${path}/owners`, { email: bob.email }),
    () => ann.api('DELETE', `${path}/owners/${bob.id}`),
  ]
  for (const [at, change] of changes.entries()) {
    await change()
    const etag = await etagOf(ann, id)
    // Once the co-owner is removed, all that is shown is as it was before: that is the same version.
    if (at < changes.length - 1) t.notOk(seen.has(etag), `change ${at}`)
    seen.add(etag)
  }
  const carol = await links.user('carol')
  const before = await etagOf(ann, id)
  await ann.api('POST', `${path}/shares`, { email: carol.email })
  t.equal(await etagOf(ann, id), before, 'a share is not shown, and no change of the link')
}

async function byTheForm(t: Test, ann: PageUser, bob: PageUser): Promise<void> {
  const link = await makeLink(ann, 'form', { url: 'http://old/', title: 'Old', tags: ['a', 'b'] })
  const at = `/-/links/${link.id}/edit`
  const opened = versionIn((await ann.get(at)).text)
  const typed = { url: 'http://ann/', title: 'Old', tags: 'a, b', visibility: 'public' }
  const byBob = { ...typed, url: 'http://bob/', title: '<b>New', description: 'by Bob' }
  t.match(await bob.post(at, { ...byBob, version: opened }), { status: 303 })

  const stale = await ann.post(at, { ...typed, version: opened }, HTMX)
  t.equal(stale.status, 412)
  t.match(stale.text, /^<form\s+id="link-form"/)
  const text = wordsIn(stale.text)
  t.match(text, /Somebody else has changed this link since you opened this form/)
  t.match(
    text,
    /Leads to http:\/\/ann\/ http:\/\/bob\/ Title Old &lt;b&gt;New Description none by Bob/,
  )
  t.notMatch(text, /Tags a, b|Visibility public/, 'nothing that is as it was typed')
  t.match(text, /bob@example\.com changed the address from http:\/\/old\/ to http:\/\/bob\//)
  t.match(stale.text, 'value="http://ann/"', 'what was typed stays')
  t.equal((await ann.api<Link>('GET', `/links/${link.id}`)).json.url, 'http://bob/', 'not saved')
  const page = await ann.post(at, { ...typed, version: opened }, NAVIGATION)
  t.match(page, { status: 412, text: /^<!doctype html>/ }, 'without script too')

  const invalid = await ann.post(at, { ...typed, url: 'nothing', version: opened }, HTMX)
  t.equal(invalid.status, 400)
  t.equal(versionIn(invalid.text), opened, 'a refused field does not bring the form up to date')

  const version = versionIn(stale.text)
  t.match(await ann.post(at, { ...typed, version }), { status: 303 }, 'it is saved knowingly')
  const { json } = await ann.api<Link>('GET', `/links/${link.id}`)
  t.match(json, { url: 'http://ann/', title: 'Old', description: '' })
  t.match(await ann.post(at, { ...typed, version: '' }), { status: 412 })
  t.match(await ann.post(at, typed), { status: 303 }, 'a program may leave it out')
}

function ifMatch(etag: string): Headers {
  return { 'if-match': etag }
}

async function etagOf({ api }: PageUser, id: string): Promise<string> {
  return (await api('GET', `/links/${id}`)).headers.etag ?? ''
}

function versionIn(text: string): string {
  return /name="version"\s+value="([^"]+)"/.exec(text)?.[1] ?? ''
}

/** The text of a page between its tags. */
function wordsIn(text: string): string {
  return text.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')
}
