import { gzipSync } from 'node:zlib'
import { t } from 'tap'
import { request } from '../helpers/http.ts'
import { identity, linksServer } from '../helpers/links.ts'
import { opsServer } from '../helpers/ops.ts'
import { accessible, checkable, fits, measurable, measure, worksByKeyboard } from './measure.ts'
import { browse, loadFailure } from './pages.ts'
import {
  fillAdmin,
  fillLinks,
  fillLong,
  fillOps,
  fillOrdinary,
  startSites,
  type Paths,
} from './sites.ts'

// One page of each kind, with texts as long as they may be; test/long has all pages and sizes.

const { server, env } = await startSites(t)
const links = linksServer(server, env)
const { hooks } = server
await fillOrdinary(hooks)
const long = await fillLong(hooks)
const ann = await fillLinks(links)
const eve = await fillAdmin(links)
const ops = await fillOps(opsServer(server, env))
const docs = ['/-/docs/settings', '/-/docs/search?q=backup']

/** Pages of a service, and who looks at them. */
type Seen = readonly [name: string, base: string, paths: Paths, email: string]
const SEEN: readonly Seen[] = [
  ['hooks', hooks, ['/', '/log?rejected=1', ...docs, ...long.slice(2)], ''],
  ['links', links.base, ann.kinds, ann.email],
  ['links of an admin', links.base, eve.kinds, eve.email],
  ['ops', server.ops, ops.kinds, ''],
]
const OPTIONS = {
  origins: [hooks, server.links, server.ops],
  expectedErrors: [404, 410].map(loadFailure),
}
/** Where the header has a menu, only pictures, or words. All pages have it at the first width, some at all of them. */
const WIDTHS = [1280, 800, 1024, 1279, 1920]
/** By width: the greatest height of a row, of two lines or of one, and the lines of filters. */
const LOG_SIZES = [
  [390, 60, 2],
  [1024, 34, 1],
  [1280, 60, 1],
  [1440, 34, 1],
  [1600, 34, 1],
  [1920, 34, 1],
] as const
/** Where all that is in the header stands, and in how many lines. */
const HEADER = `[inPage.placesOf('.top > :not(.viewer), #navigation a'),
  inPage.lines('.top > *, #navigation a')]`
/** Styles and scripts of a page, compressed. */
const MOST_BYTES = 60 * 1024

const { page, context } = await browse(t, hooks, OPTIONS)
await measurable(context)
await checkable(context)
const sizes = new Map<string, number>()

/** How many bytes these files have, compressed. */
async function sizeOf(urls: readonly string[]) {
  let sum = 0
  for (const url of urls) {
    const known = sizes.get(url) ?? gzipSync((await request(url)).text).length
    sizes.set(url, known)
    sum += known
  }
  return sum
}

for (const [name, base, paths, email] of SEEN) {
  await t.test(name, async (t) => {
    await page.setExtraHTTPHeaders(identity(email))
    const places = new Map(WIDTHS.map((width) => [width, new Set<string>()]))
    for (const path of paths) {
      await t.test(path.slice(0, 60), async (t) => {
        await page.goto(base + path)
        t.same(await measure(page, 'structure()'), [])
        const isAtAll = path === paths[0] || path === paths.at(-1)
        for (const width of WIDTHS.slice(0, isAtAll ? WIDTHS.length : 1)) {
          await page.setViewportSize({ width, height: 900 })
          const [at, lines] = await page.evaluate<[string, number]>(HEADER)
          places.get(width)?.add(at)
          t.equal(lines, 1, `${width} px: one line`)
        }
        const primary = await page.locator('.primary:visible').count()
        t.ok(primary <= 1, `${primary} primary buttons`)
        const bytes = await sizeOf(await measure(page, 'assets()'))
        t.ok(bytes <= MOST_BYTES, `${bytes} bytes of styles and scripts`)
        await measure(page, 'openDetails()')
        await accessible(t, page)
        await fits(t, page, 1280, ['light'])
        await fits(t, page, 390, ['dark'])
      })
    }
    for (const [width, seen] of places) {
      t.equal(seen.size, 1, `${width} px: the header never moves: ${[...seen].join('\n')}`)
    }
    await t.test('the last of them by keyboard', (t) => worksByKeyboard(t, page))
  })
}

await t.test('on a phone all can be touched, and nothing scrolls sideways', async (t) => {
  const phone = { hasTouch: true, isMobile: true, viewport: { width: 390, height: 800 } }
  const { page, context } = await browse(t, hooks, { ...OPTIONS, ...phone })
  await measurable(context)
  for (const [, base, paths, email] of SEEN) {
    await page.setExtraHTTPHeaders(identity(email))
    for (const path of [paths[0], paths.at(-1)]) {
      await page.goto(base + path)
      await fits(t, page, 390, ['light'])
    }
  }
})

await t.test('beside an open event the log has dense rows and filters', async (t) => {
  await page.goto(`${hooks}/log?open=1`)
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
