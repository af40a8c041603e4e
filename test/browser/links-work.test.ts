import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import {
  identity,
  insertLinks,
  makeLink,
  startPages,
  type Link,
  type PageUser,
} from '../helpers/links.ts'
import { until } from '../helpers/until.ts'
import {
  browse,
  clickButton,
  clickCopy,
  clickLink,
  copiedOn,
  focusedId,
  loadFailure,
  rememberCopies,
  textOf,
  untilFocused,
  untilText,
} from './pages.ts'

/** One service for all tests of this file, each with users of its own. */
const links = await startPages(t, postgres)

/** The id of a link of the user. */
async function idOf({ api }: PageUser, slug: string) {
  const { json } = await api<{ links: readonly Link[] }>('GET', '/links')
  return json.links.find((link) => link.slug === slug)?.id ?? ''
}

const { page, context } = await browse(t, links.base, {
  expectedErrors: [400, 403, 404, 409, 410].map(loadFailure),
})
await rememberCopies(context)

await t.test('a link from its making to its end', async (t) => {
  const ann = await links.user('ann')
  const bob = await links.user('bob')
  await makeLink(bob, 'taken', { visibility: 'private' })
  await context.setExtraHTTPHeaders(identity(ann.email))
  const state = page.locator('#slug-state')

  await t.test('from an unknown slug', async (t) => {
    await page.goto(`${links.base}/handbok`)
    await clickButton(page, 'Create “handbok”')
    await page.waitForURL(`${links.base}/-/new?slug=handbok`)
    t.equal(await page.getByLabel('Short name').inputValue(), 'handbok')
    await untilFocused(page, 'link-url')
  })

  await t.test('the slug is checked as one types', async (t) => {
    const slug = page.getByLabel('Short name')
    await slug.fill('')
    await slug.pressSequentially('take')
    await untilText(state, /\/take is free\.$/)
    await slug.pressSequentially('n')
    await untilText(state, /\/taken is taken\. taken-2 is free\. Use taken-2$/)
    await clickButton(page, 'Use taken-2')
    await untilText(state, /\/taken-2 is free\.$/)
    t.equal(await slug.inputValue(), 'taken-2')
    t.equal(await focusedId(page), 'link-slug')
    await slug.fill('settings')
    await untilText(state, /^Slug is reserved/)
    await slug.fill('taken')
    await untilText(state, /is taken/)
  })

  await t.test('the address is completed, and its places are tried, as one types', async (t) => {
    const places = page.locator('#link-places')
    await page.getByLabel('Leads to').fill('bugs.test/{1}?q={*}')
    await untilText(places, /It will lead to https:\/\/bugs\.test\/\{1\}/)
    await untilText(places, /\/taken\/one\/a\/b leads to https:\/\/bugs\.test\/one\?q=a\/b$/)
    await page.getByLabel('{1}').pressSequentially('x y')
    await untilText(places, /\/taken\/x%20y leads to https:\/\/bugs\.test\/x%20y\?q=$/)
    t.equal(await focusedId(page), 'place-1', 'the field keeps the focus')
    await page.getByLabel('Leads to').fill('https://handbook.test/')
    await untilText(places, '')
  })

  await t.test('tags are offered as one types', async (t) => {
    await makeLink(ann, 'tagged-one', { tags: ['people', 'process'] })
    await page.getByLabel('Tags').pressSequentially('new, PEO')
    const offered = page.locator('#link-tags-list option')
    await until(
      async () => (await offered.first().getAttribute('value')) === 'new, people',
      'the tag that goes on',
    )
    t.equal(await offered.count(), 1)
    await ann.api('DELETE', `/links/${await idOf(ann, 'tagged-one')}`)
  })

  await t.test('refused: the field says why and has the focus, the rest stays', async (t) => {
    await page.getByLabel('Tags').fill('People, hand book')
    await page.getByRole('radio', { name: /^Private/ }).check()
    await clickButton(page, 'Create link')
    await untilText(page.locator('#link-slug-refused'), 'Short name already taken.')
    t.equal(await focusedId(page), 'link-slug')
    t.equal(await page.getByLabel('Tags').inputValue(), 'People, hand book')
    t.ok(await page.getByRole('radio', { name: /^Private/ }).isChecked())
  })

  await t.test('made', async (t) => {
    await page.getByLabel('Short name').fill('handbook')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/-\/links\/[0-9a-f-]+$/)
    t.match(await textOf(page.locator('h1')), /\/handbook private$/)
    t.equal(await textOf(page.locator('#short-link')), `${links.base}/handbook`)
    t.equal(await textOf(page.locator('#ready')), `${new URL(links.base).host}/handbook is ready.`)
    const focused = page.locator(':focus')
    t.equal(await focused.getAttribute('data-copy'), 'short-link', 'Enter copies it')
    await page.reload()
    t.equal(await page.locator('#ready').count(), 0, 'said once')
  })

  await t.test('shared, and ended again', async (t) => {
    const status = page.locator('#members > [role=status]')
    await page.getByLabel('Share with').fill('nobody@example.com')
    await page.keyboard.press('Enter')
    await untilText(page.locator('#shares-email-refused'), /^No user has this e-mail address: /)
    t.equal(await focusedId(page), 'shares-email')
    await page.getByLabel('Share with').fill(bob.email)
    await page.keyboard.press('Enter')
    await untilText(status, 'bob@example.com may read the link now.')
    await clickButton(page, 'End the share with bob@example.com')
    await untilText(status, 'The share is ended.')
    t.equal((await bob.get(new URL(page.url()).pathname)).status, 403)
  })

  await t.test('edited, compared with its earlier version, and restored', async (t) => {
    const newest = () => textOf(page.locator('.history li').first())
    await clickLink(page, 'Edit')
    await page.waitForURL(/\/edit$/)
    await page.getByLabel('Leads to').fill('https://handbook.test/new')
    await page.keyboard.press('Enter')
    await page.locator('#members').waitFor()
    t.match(
      await newest(),
      /changed the address from .*handbook\.test\/.* to .*handbook\.test\/new/,
    )
    await page.getByRole('link', { name: 'Restore this version' }).first().click()
    await clickButton(page, 'Restore this version')
    await page.locator('#members').waitFor()
    t.match(await newest(), /restored an earlier version: changed the address/)
  })

  await t.test('deleted, and restored', async (t) => {
    await clickLink(page, 'Delete…')
    await clickButton(page, 'Delete the link')
    // The page that asks has a link of the same name.
    await page.waitForURL(`${links.base}/-/`)
    await clickLink(page, 'Deleted links')
    await clickButton(page, 'Restore handbook')
    await page.locator('#members').waitFor()
    t.match(await textOf(page.locator('h1')), /handbook/)
    await ann.api('DELETE', `/links/${await idOf(ann, 'handbook')}`)
    await page.goto(`${links.base}/-/`)
  })

  await t.test('without a link: a form, until there is one', async (t) => {
    const form = page.locator('.first-link')
    await page.getByRole('heading', { name: 'Create your first link' }).waitFor()
    t.notOk(await page.getByLabel('Search').isVisible(), 'there is nothing to search')
    await page.getByLabel('Short name').fill('typed')
    await makeLink(ann, 'from-terminal')
    await page.locator('#links > tr').waitFor()
    t.same(await form.isVisible(), false, 'the list has taken its place')
    t.ok(await page.getByLabel('Search').isVisible())
    await page.keyboard.press('/')
    await page.keyboard.type('none')
    await page.keyboard.press('Enter')
    await untilText(page.locator('.empty strong'), 'No link matches.')
  })
})

await t.test('the bookmark of the help opens the form', async (t) => {
  const greta = await links.user('greta')
  await context.setExtraHTTPHeaders(identity(greta.email))
  await page.goto(`${links.base}/-/help`)
  const bookmark =
    (await page.getByRole('link', { name: 'New go link' }).getAttribute('href')) ?? ''
  t.equal(await textOf(page.locator('#bookmark')), bookmark)
  const [, code = ''] = /^javascript:(.*)$/.exec(bookmark) ?? []
  await page.goto(`${links.base}/-/tags?x=a%26b#top`)
  const wanted = page.url()
  const opened = context.waitForEvent('page')
  // A browser decodes the address of a bookmark before it runs it.
  await page.evaluate(decodeURIComponent(code))
  const form = await opened
  await form.waitForURL(/\/-\/new\?url=/)
  t.equal(await form.getByLabel('Leads to').inputValue(), wanted)
  t.match(await form.getByLabel('Title').inputValue(), /^Tags/)
})

await t.test('lists: search, filters, more, copy', async (t) => {
  const cleo = await links.user('cleo')
  const numbered = Array.from({ length: 54 }, (_, at) => {
    return { slug: `n-${at + 10}`, owners: [cleo.email] }
  })
  await insertLinks(links, postgres, numbered)
  await makeLink(cleo, 'wiki', { title: 'All that we know', visibility: 'secure' })
  await context.setExtraHTTPHeaders(identity(cleo.email))
  const rows = page.locator('#links > tr')
  await page.goto(`${links.base}/-/`)
  t.equal(await rows.count(), 50)

  await t.test('more: rows are added, the focus stays at the end', async (t) => {
    await page.locator('#links-more-link').focus()
    await page.keyboard.press('Enter')
    await untilText(page.locator('#links-more'), 'No more links.')
    t.equal(await rows.count(), 55)
    t.equal(await focusedId(page), 'links-more-link')
  })

  await t.test('search, from the keyboard', async (t) => {
    await page.getByRole('searchbox').focus()
    await page.keyboard.type('KNOW')
    await page.waitForURL(/q=KNOW/)
    t.equal(await focusedId(page), 'filter-q', 'applied while one types')
    await untilText(page.locator('#links-results .type a'), /\/wiki$/)
    t.equal(await rows.count(), 1)
    t.notMatch(page.url(), /visibility=|role=/, 'what says nothing is not in the address')
    await clickLink(page, 'Clear')
    await page.waitForURL(`${links.base}/-/`)
    await page.getByLabel('Visibility').selectOption('secure')
    await page.waitForURL(/visibility=secure/)
    await untilText(page.locator('#links-results .type a'), /\/wiki$/)
  })

  await t.test('what was typed before the scripts came is searched for', async () => {
    const typed = Promise.withResolvers<void>()
    await page.route('**/htmx.js', async (route) => {
      await typed.promise
      await route.continue()
    })
    await page.goto(`${links.base}/-/`, { waitUntil: 'commit' })
    await page.getByRole('searchbox').pressSequentially('KNOW')
    typed.resolve()
    await page.waitForURL(/q=KNOW/)
    await page.unroute('**/htmx.js')
  })

  await t.test('Enter opens the link of that name, else the first', async (t) => {
    for (const [typed, slug] of [
      ['n-1', 'n-10'],
      ['n-33', 'n-33'],
      ['all that', 'wiki'],
    ] as const) {
      await page.goto(`${links.base}/-/`)
      await page.keyboard.press('/')
      await page.keyboard.type(typed)
      await page.keyboard.press('Enter')
      await page.waitForURL(/\/-\/links\/[0-9a-f-]+$/)
      t.match(await textOf(page.locator('h1')), new RegExp(`/${slug} `))
    }
  })

  await t.test('a link is a line, and copying it moves nothing', async (t) => {
    await page.goto(`${links.base}/-/?q=wiki`)
    const row = rows.first()
    const before = await row.boundingBox()
    t.equal(Math.round(before?.height ?? 0), 32)
    const cells = row.getByRole('cell')
    const boxes = () => Promise.all([0, 1, 6].map((at) => cells.nth(at).boundingBox()))
    const placed = await boxes()
    await clickCopy(
      page.getByRole('button', { name: 'Copy the short link of wiki' }),
      page.getByRole('button', { name: 'Copied the short link of wiki' }),
    )
    t.equal(await copiedOn(page), `${links.base}/wiki`)
    t.same([await row.boundingBox(), await boxes()], [before, placed])
  })
})

await t.test('a preview whose field is cleared is no new preview', async (t) => {
  const dorothy = await links.user('dorothy')
  await makeLink(dorothy, 'tickets', { url: 'https://bugs.test/{1}' })
  await context.setExtraHTTPHeaders(identity(dorothy.email))
  await page.goto(`${links.base}/tickets+`)
  const example = page.locator('#example')
  await page.getByLabel('{1}').fill('7')
  await untilText(example, /leads to https:\/\/bugs\.test\/7/)
  const asked = page.waitForRequest(/\/tickets\+/)
  await page.getByLabel('{1}').fill('')
  t.equal(new URL((await asked).url()).search, '?place-1=', 'without it the visit would count')
  await untilText(example, /^For example, .* leads to https:\/\/bugs\.test\/one$/)
})
