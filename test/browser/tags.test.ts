import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { identity, pageUser, startPages } from '../helpers/links-pages.ts'
import { makeLink } from '../helpers/links-setup.ts'
import { until } from '../helpers/until.ts'
import { browse, loadFailure, textOf } from './pages.ts'

/** What a strict reader of XML finds in a text: the first error, or names and attributes. */
const READ_XML = `(text) => {
  const xml = new DOMParser().parseFromString(text, 'application/xml')
  const error = xml.querySelector('parsererror')?.textContent ?? null
  const urls = [...xml.getElementsByTagName('Url')].map((url) => [
    url.getAttribute('type'),
    url.getAttribute('template'),
  ])
  const { localName, namespaceURI } = xml.documentElement
  return { error, localName, namespaceURI, urls }
}`

await t.test('tags by mouse and keyboard', async (t: Test) => {
  const links = await startPages(t, backends[0])
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const title = '"><img src=x onerror=alert(1)>'
  await makeLink(ann, 'docs', { title, tags: ['wiki', 'shared'] })
  await makeLink(bob, 'hidden', { visibility: 'private', tags: ['bobs', 'shared'] })
  const tags = Array.from({ length: 55 }, (_, at) => `n-${at + 10}`)
  for (let at = 0; at < 55; at += 20)
    await makeLink(ann, `l-${at}`, { tags: tags.slice(at, at + 20) })
  const { page } = await browse(t, links.base, {
    extraHTTPHeaders: identity(ann.email),
    expectedErrors: [loadFailure(404)],
  })
  const rows = page.locator('#tags > tr')

  await t.test('the list, more of it by keyboard', async (t) => {
    await page.goto(`${links.base}/-/`)
    await page.getByRole('navigation', { name: 'Main' }).getByText('Tags').click()
    t.equal(await rows.count(), 50)
    await page.getByRole('link', { name: 'Show more' }).focus()
    await page.keyboard.press('Enter')
    await until(async () => (await rows.count()) === 57, 'all rows')
    await until(
      async () => (await textOf(page.locator(':focus'))) === 'That is all.',
      'the focus where it was',
    )
    t.match(await textOf(rows.filter({ hasText: 'shared' })), /^shared 1/, 'only what one sees')
  })

  await t.test('a tag, and a link of it', async (t) => {
    await page.getByRole('link', { name: 'wiki', exact: true }).click()
    await page.getByRole('heading', { name: 'Links tagged “wiki”' }).waitFor()
    t.match(await textOf(page.locator('#tagged > tr')), title)
    t.equal(await page.locator('main img').count(), 0, 'a title is text')
    await page.getByRole('link', { name: /docs$/ }).click()
    await page.waitForURL(/\/-\/links\/[0-9a-f-]{36}$/)
  })

  await t.test('a tag of another is none', async (t) => {
    await page.goto(`${links.base}/-/tags/bobs`)
    t.match(await textOf(page.locator('main')), /^404 Not Found Tag not found\./)
    t.notMatch(await textOf(page.locator('main')), 'bobs')
  })
})

await t.test("a browser's search", async (t: Test) => {
  const links = await startPages(t, backends[1])
  const ann = await pageUser(links, 'ann')
  await makeLink(ann, 'docs', { url: `${links.base}/-/help`, append_path: false })
  await makeLink(ann, 'tagged', { url: `${links.base}/-/tags`, append_path: true, tags: ['wiki'] })
  for (const javaScriptEnabled of [true, false]) {
    await t.test(javaScriptEnabled ? 'with script' : 'without', async (t) => {
      const extraHTTPHeaders = identity(ann.email)
      const { page } = await browse(t, links.base, { extraHTTPHeaders, javaScriptEnabled })
      await page.goto(`${links.base}/-/go?q=docs`)
      t.equal(new URL(page.url()).pathname, '/-/help', 'to where the link leads')
      await page.goto(`${links.base}/-/go?q=tagged/wiki`)
      t.equal(new URL(page.url()).pathname, '/-/tags/wiki', 'with the path')
      await page.goto(`${links.base}/-/go?q=tagge/wiki`)
      await page.getByRole('link', { name: 'tagged' }).click()
      await page.waitForURL(`${links.base}/-/tags/wiki`)
      await page.goto(`${links.base}/-/go?q=New-One`)
      await page.getByRole('button', { name: 'Create “new-one”' }).click()
      await page.waitForURL(/\/-\/new\?slug=new-one$/)
      t.equal(await page.locator('#link-slug').inputValue(), 'new-one')
    })
  }

  await t.test('its description is XML that names this place', async (t) => {
    const { page } = await browse(t, links.base, { extraHTTPHeaders: identity(ann.email) })
    await page.goto(`${links.base}/-/help`)
    const link = page.locator('link[rel=search]')
    t.equal(await link.getAttribute('type'), 'application/opensearchdescription+xml')
    const { text } = await ann.get((await link.getAttribute('href')) ?? '')
    const description = await page.evaluate(`(${READ_XML})(${JSON.stringify(text)})`)
    t.same(description, {
      error: null,
      localName: 'OpenSearchDescription',
      namespaceURI: 'http://a9.com/-/spec/opensearch/1.1/',
      urls: [
        ['text/html', `${links.base}/-/go?q={searchTerms}`],
        ['application/x-suggestions+json', `${links.base}/-/suggest?q={searchTerms}`],
        ['application/opensearchdescription+xml', `${links.base}/-/opensearch.xml`],
      ],
    })
  })
})
