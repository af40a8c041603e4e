import { t, type Test } from 'tap'
import type { Page } from 'playwright-core'
import { identity, linksServer } from '../helpers/links.ts'
import { opsServer } from '../helpers/ops.ts'
import {
  SCHEMES,
  fits,
  hoverButtons,
  measurable,
  measure,
  namesAll,
  timesAreLocal,
  useZone,
  worksByKeyboard,
} from '../browser/measure.ts'
import { browse, focusedId, loadFailure } from '../browser/pages.ts'
import type { TestBrowser } from '../helpers/browser.ts'
import {
  fillAdmin,
  fillLinks,
  fillLong,
  fillOps,
  fillOrdinary,
  startSites,
  type Paths,
} from '../browser/sites.ts'

/** One program for all pages. */
const { server, env } = await startSites(t)
const WIDTHS = [1280, 390, 320] as const

/** Fits on every width, and is readable in both colour schemes. */
async function looksRight(t: Test, page: Page) {
  t.same(await measure(page, 'structure()'), [])
  await measure(page, 'openDetails()')
  for (const width of WIDTHS) await fits(t, page, width)
  await hoverButtons(t, page)
}

/** A browser in a zone of its own, whose pages can be measured. */
async function openViewer(t: Test, base: string, email = ''): Promise<TestBrowser> {
  // A violation of the content security policy and any error in script fail the test at once.
  const browser = await browse(t, base, {
    extraHTTPHeaders: identity(email),
    expectedErrors: [400, 403, 404, 410, 422].map(loadFailure),
  })
  await measurable(browser.context)
  await useZone(browser.page)
  return browser
}

/** Looks at each page in every way. */
async function visit(t: Test, page: Page, base: string, paths: Paths) {
  for (const [at, path] of paths.entries()) {
    await t.test(path.slice(0, 40), async (t) => {
      await page.goto(base + path)
      await namesAll(t, page)
      await timesAreLocal(t, page)
      await looksRight(t, page)
      await page.emulateMedia({ colorScheme: SCHEMES[at % 2] ?? 'light' })
      await worksByKeyboard(t, page)
    })
  }
}

await t.test('hooks', async (t) => {
  const base = server.hooks
  const { page } = await openViewer(t, base)
  const ordinary = await fillOrdinary(base)
  await t.test('ordinary', (t) => visit(t, page, base, ordinary))

  await t.test('skip link: the first press of Tab leads to the content', async (t) => {
    await page.goto(`${base}/log`)
    await page.keyboard.press('Tab')
    const skip = page.getByRole('link', { name: 'Skip to content' })
    t.match(await skip.boundingBox(), { width: Number, height: Number })
    t.ok(((await skip.boundingBox())?.height ?? 0) > 20, 'it shows while it has the focus')
    await page.keyboard.press('Enter')
    t.equal(await focusedId(page), 'main')
  })

  const long = await fillLong(base)
  await t.test('long', (t) => visit(t, page, base, long))
})

await t.test('links', async (t) => {
  const links = linksServer(server, env)
  for (const fill of [fillLinks, fillAdmin]) {
    const { kinds, email } = await fill(links)
    const { page } = await openViewer(t, links.base, email)
    await visit(t, page, links.base, kinds)
  }
})

await t.test('ops', async (t) => {
  const { kinds } = await fillOps(opsServer(server, env))
  const { page } = await openViewer(t, server.ops)
  await visit(t, page, server.ops, kinds)
})
