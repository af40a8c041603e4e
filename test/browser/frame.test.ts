import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { t } from 'tap'
import type { Test } from 'tap'
import { request } from '../helpers/http.ts'
import { identity, linksServer, makeLink, pageUser } from '../helpers/links.ts'
import { opsServer } from '../helpers/ops.ts'
import { until } from '../helpers/until.ts'
import { accessible, fits, measurable, measure } from './measure.ts'
import {
  browse,
  clickCopy,
  focusedId,
  loadFailure,
  rememberCopies,
  textOf,
  untilText,
} from './pages.ts'
import { fillAdmin, fillLinks, fillOps, fillOrdinary, startSites } from './sites.ts'
import type { Paths } from './sites.ts'

// What all pages share: the header, the sizes, the messages, the palette.

const { server, env } = await startSites(t)
const links = linksServer(server, env)
const ann = await fillLinks(links)
const eve = await fillAdmin(links)
const hooksPages = await fillOrdinary(server.hooks)
const ops = await fillOps(opsServer(server, env))

/** Pages of a service, and who looks at them. */
type Seen = readonly [name: string, base: string, paths: Paths, email: string]
const SEEN: readonly Seen[] = [
  ['hooks', server.hooks, hooksPages, ''],
  ['links', links.base, ann.kinds, ann.email],
  ['links of an admin', links.base, eve.kinds, eve.email],
  ['ops', server.ops, ops.kinds, ''],
]
const NOT_THERE = [404, 410].map(loadFailure)
/** Where the header has a menu, only pictures, or words. */
const WIDTHS = [800, 1024, 1279, 1280, 1920]
/** By width: the greatest height of a row, of two lines or of one, and the lines of filters. */
const LOG_SIZES = [
  [390, 60, 2],
  [1024, 34, 1],
  [1280, 60, 1],
  [1440, 34, 1],
  [1600, 34, 1],
  [1920, 34, 1],
] as const
/** Styles and scripts of a page, compressed. */
const MOST_BYTES = 60 * 1024

const sizes = new Map<string, number>()

/** How many bytes these files have, compressed. */
async function sizeOf(urls: readonly string[]): Promise<number> {
  let sum = 0
  for (const url of urls) {
    const known = sizes.get(url) ?? gzipSync((await request(url)).text).length
    sizes.set(url, known)
    sum += known
  }
  return sum
}

for (const [name, base, paths, email] of SEEN) {
  await t.test(`${name}: one header, one primary button, and few bytes`, async (t: Test) => {
    const options = { extraHTTPHeaders: identity(email), expectedErrors: NOT_THERE }
    const { page, context } = await browse(t, base, {
      ...options,
      viewport: { width: 1920, height: 900 },
    })
    await measurable(context)
    const places = new Map(WIDTHS.map((width) => [width, new Set<string>()]))
    for (const path of paths) {
      await page.goto(base + path, { waitUntil: 'networkidle' })
      for (const [width, seen] of places) {
        await page.setViewportSize({ width, height: 900 })
        seen.add(await measure(page, `placesOf('.top > :not(.viewer), #navigation a')`))
        t.equal(
          await measure(page, `lines('.top > *, #navigation a')`),
          1,
          `${width} px: one line`,
        )
      }
      const primary = await page.locator('.primary:visible').count()
      const where = path.slice(0, 60)
      t.ok(primary <= 1, `${primary} primary buttons on ${where}`)
      const bytes = await sizeOf(await measure(page, 'assets()'))
      t.ok(bytes <= MOST_BYTES, `${bytes} bytes of styles and scripts on ${where}`)
    }
    for (const [width, seen] of places) {
      t.equal(seen.size, 1, `${width} px: the header never moves: ${[...seen].join('\n')}`)
    }
  })
}

await t.test('on a phone all can be touched, and nothing scrolls sideways', async (t: Test) => {
  for (const [, base, paths, email] of SEEN) {
    const { page, context } = await browse(t, base, {
      ...{ extraHTTPHeaders: identity(email), expectedErrors: NOT_THERE },
      ...{ hasTouch: true, isMobile: true, viewport: { width: 390, height: 800 } },
    })
    await measurable(context)
    for (const path of [paths[0], paths.at(-1)]) {
      await page.goto(base + path)
      await fits(t, page, 390, ['light'])
    }
  }
})

await t.test('beside an open event the log has dense rows and filters', async (t: Test) => {
  const { page, context } = await browse(t, server.hooks)
  await measurable(context)
  await page.goto(`${server.hooks}/log?open=1`)
  await page.locator('#log-open .event-title').waitFor()
  const fields = `lines('.filter:has(#filter-q) :is(input, select, button, summary)')`
  const words = page.locator('.filter .more-menu')
  for (const [width, rowHeight, filterLines] of LOG_SIZES) {
    await page.setViewportSize({ width, height: 900 })
    const heights = await measure<readonly number[]>(page, `heights('#log-rows > tr')`)
    t.ok(Math.max(...heights) <= rowHeight, `rows at ${width} px: ${heights.join(', ')} px high`)
    t.equal(await measure(page, fields), filterLines, `lines of filters at ${width} px`)
    await words.locator('> summary').click()
    const box = await words.locator('> ul').boundingBox()
    t.ok((box?.x ?? -1) >= 0, `the list of words is in the window at ${width} px`)
    await words.locator('> summary').click()
  }
})

await t.test('a refused field has the focus, and its message names its label', async (t: Test) => {
  const { page } = await browse(t, server.hooks, { expectedErrors: [loadFailure(422)] })
  await page.goto(`${server.hooks}/destinations/-/new`)
  await page.fill('#add-name', 'crm')
  await page.fill('#add-url', 'https://10.0.0.1/in')
  await page.click('#add-button')
  const refused = page.locator('#add-url-refused')
  await refused.waitFor()
  t.equal(await focusedId(page), 'add-url')
  t.match(await page.getAttribute('#add-url', 'aria-describedby'), /^add-url-refused/)
  t.equal(await page.locator('.refused').count(), 1)

  const { page: admin } = await browse(t, links.base, {
    extraHTTPHeaders: identity(ann.email),
    expectedErrors: [loadFailure(400)],
  })
  await admin.goto(`${links.base}/-/new`)
  await admin.fill('#link-slug', 'late')
  await admin.fill('#link-url', 'ftp://example.com/')
  await admin.click('#save-link')
  await untilText(admin.locator('#link-url-refused'), /^Leads to must/)
  t.equal(await focusedId(admin), 'link-url')
})

await t.test('what was done is said where it was done, and once', async (t: Test) => {
  const { page } = await browse(t, server.ops)
  const done = page.locator('#done')
  await page.goto(`${server.ops}/config`)
  await page.click('#save-config')
  await untilText(done, 'Saved.')

  await page.goto(`${server.ops}/mutes`)
  await page.fill('#mute-form-for', '1h')
  await page.fill('#mute-form-reason', 'Moving house')
  await page.keyboard.press('Enter')
  await untilText(done, 'Created the mute.')
  await until(() => new URL(page.url()).search === '', 'the address not to keep it')
  await page.reload()
  t.equal(await done.textContent(), '')
})

await t.test('a copy button keeps its place', async (t: Test) => {
  const { page, context } = await browse(t, links.base, {
    extraHTTPHeaders: identity(ann.email),
  })
  await rememberCopies(context)
  await measurable(context)
  await page.goto(`${links.base}/-/all`)
  const before = await measure(page, `placesOf('td, button')`)
  await clickCopy(
    page.getByRole('button', { name: 'Copy the short link of docs' }),
    page.getByRole('button', { name: 'Copied the short link of docs' }),
  )
  t.equal(await measure(page, `placesOf('td, button')`), before)
})

/** Opens the palette and types, until the chosen option is the wanted one. */
async function find(page: Page, text: string, wanted: RegExp): Promise<void> {
  if (!(await page.locator('#palette').isVisible())) await page.keyboard.press('Control+k')
  await page.locator('#palette input').fill(text)
  await untilText(page.locator('#palette-list [aria-selected="true"]'), wanted)
}

await t.test('the palette by keyboard alone', async (t: Test) => {
  await t.test('hooks: a page, a provider, an event by its id', async (t: Test) => {
    const { page } = await browse(t, server.hooks)
    await page.goto(server.hooks)
    await find(page, '', /^Dashboard/)
    await accessible(t, page)
    await page.keyboard.press('ArrowDown')
    t.equal(await textOf(page.locator('#palette-list [aria-selected="true"]')), 'Log')
    const active = await page.getAttribute('#palette input', 'aria-activedescendant')
    t.equal(await textOf(page.locator(`#${active}`)), 'Log')
    await page.keyboard.press('Escape')
    await page.locator('#palette').waitFor({ state: 'hidden' })
    await find(page, 'door', /^generic:door-bell$/)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/providers\?open=generic%3Adoor-bell$/)
    await find(page, '#1', /^Event 1: push/)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/log\/1$/)
    await page.keyboard.press('Control+k')
    await page.locator('#palette input').fill('nothing-has-this-name')
    await untilText(page.locator('#palette [role="status"]'), 'Nothing found.')
  })

  await t.test('links: only those that the visitor may see', async (t: Test) => {
    const bob = await pageUser(links, 'bob2')
    await makeLink(bob, 'hidden-plan', { visibility: 'private' })
    await makeLink(bob, 'secure-plan', { visibility: 'secure' })
    const { page } = await browse(t, links.base, {
      extraHTTPHeaders: identity(ann.email),
    })
    await page.goto(`${links.base}/-/`)
    await find(page, 'docs', /\/docs/)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/-\/links\//)
    const asked = await page.request.get(`${links.base}/-/palette?q=secure-plan`)
    t.notMatch(await asked.text(), /href="[^"]*secure-plan/)
    t.match(await asked.text(), 'Nothing found.')
    const stranger = await fetch(`${links.base}/-/palette?q=docs`)
    t.equal(stranger.status, 403)
  })

  await t.test('ops: an action, a check, a session', async (t: Test) => {
    const { page } = await browse(t, server.ops)
    await page.goto(server.ops)
    await find(page, 'mute', /^Mute checks/)
    await find(page, '1', /Session 1/)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/sessions\/1$/)
  })

  await t.test('without script it is a page of links', async (t: Test) => {
    const { page } = await browse(t, server.hooks, { javaScriptEnabled: false })
    await page.goto(server.hooks)
    await page.getByRole('link', { name: 'Search' }).click()
    await page.getByLabel('Search for').fill('destination')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('main').getByRole('link', { name: 'Add a destination' }).click()
    t.equal(new URL(page.url()).pathname, '/destinations/-/new')
  })
})
