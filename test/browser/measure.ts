import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { BrowserContext, Page } from 'playwright-core'
import { extent } from '../helpers/program.ts'
import { textOf } from './pages.ts'

export const SCHEMES = ['light', 'dark'] as const
const LEAST_CONTRAST = 4.5
/** 24 px by WCAG 2.2 with a mouse, 44 px with a finger. */
const LEAST_TARGET = { mouse: 24, finger: 44 } as const
/** Half an hour off the full one, and never the day of UTC late in the evening. */
export const ZONE = 'Asia/Kolkata'

/** Puts in-page.js into all pages of a profile. */
export function measurable(context: BrowserContext) {
  return context.addInitScript({ path: join(import.meta.dirname, 'in-page.js') })
}

/** Calls a function of in-page.js. */
export function measure<T = readonly string[]>(page: Page, call: string): Promise<T> {
  return page.evaluate<T>(`inPage.${call}`)
}

const AXE = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'))

/** The contrast costs axe-core most, and `fits` measures it, too: only the long run looks twice. */
const OPTIONS = {
  resultTypes: ['violations'],
  rules: { 'color-contrast': { enabled: extent({ short: false, long: true }) } },
}
/** What axe-core finds wrong, with the beginning of each element. */
const FAULTS = `axe.run(${JSON.stringify(OPTIONS)}).then(({ violations }) =>
  violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 200))))`

/** Puts axe-core into all pages of a profile: it is large, and sent once. */
export function checkable(context: BrowserContext) {
  return context.addInitScript({ path: AXE })
}

/** axe-core finds nothing on the page. */
export async function accessible(t: Test, page: Page) {
  const isThere = await page.evaluate<boolean>(`'axe' in window`)
  if (!isThere) await page.evaluate(readFileSync(AXE, 'utf8'))
  // What was opened may ask for its content, and is pale until it has come.
  await page.locator('.htmx-request').first().waitFor({ state: 'detached' })
  const found = await page.evaluate<readonly string[]>(FAULTS)
  t.same(found, [], 'axe-core finds nothing')
}

/** Nothing sticks out of a window of this width, and all of it can be touched and read. */
export async function fits(
  t: Test,
  page: Page,
  width: number,
  schemes: readonly ('light' | 'dark')[] = SCHEMES,
) {
  await noSidewaysScroll(t, page, width)
  const isCoarse = await page.evaluate<boolean>(`matchMedia('(pointer: coarse)').matches`)
  const pointer = isCoarse ? 'finger' : 'mouse'
  const small = await measure(page, `smallTargets(${LEAST_TARGET[pointer]})`)
  t.same(small, [], `high enough for a ${pointer} at ${width} px`)
  for (const colorScheme of schemes) {
    await page.emulateMedia({ colorScheme })
    // A new row fades in.
    await page.evaluate(`Promise.all(document.getAnimations().map(({ finished }) => finished))`)
    const low = await measure(page, `lowContrast(${LEAST_CONTRAST})`)
    t.same(low, [], `contrast at ${width} px, ${colorScheme}`)
  }
}

export async function noSidewaysScroll(t: Test, page: Page, width: number) {
  await page.setViewportSize({ width, height: 800 })
  t.same(await measure(page, 'tooWide()'), [], `no sideways scroll at ${width} px`)
  t.same(await measure(page, 'torn()'), [], `no broken word and no cut heading at ${width} px`)
}

/** The contrast of each kind of button under the mouse. */
export async function hoverButtons(t: Test, page: Page) {
  await page.setViewportSize({ width: 1280, height: 800 })
  for (const kind of ['.primary', '.danger', ':not([class])']) {
    const [button] = await page.locator(`button${kind}:visible:enabled`).all()
    if (button === undefined) continue
    await button.hover()
    const low = await measure(page, `lowContrast(${LEAST_CONTRAST})`)
    t.same(low, [], `contrast of button${kind} under the mouse`)
  }
}

/** Each thing that can be used is reached by Tab, with a visible focus. */
export async function worksByKeyboard(t: Test, page: Page) {
  const faults: string[] = []
  // Where a field has the focus from the start, Tab comes to what is before it in a second round.
  for (let presses = 0, rounds = 0; presses < 300 && rounds < 2; presses++) {
    await page.keyboard.press('Tab')
    const fault = await measure<string | null>(page, 'visit()')
    if (fault === null) rounds += 1
    else if (fault !== '') faults.push(fault)
  }
  t.same(faults, [], 'the focus shows')
  t.same(await measure(page, 'unvisited()'), [], 'Tab reaches everything')
}

const OPERATED = new Set(
  'button link textbox searchbox combobox spinbutton checkbox radio switch DisclosureTriangle'.split(
    ' ',
  ),
)

/** Every role that a person operates has a name. */
export async function namesAll(t: Test, page: Page) {
  const session = await page.context().newCDPSession(page)
  const { nodes } = await session.send('Accessibility.getFullAXTree')
  await session.detach()
  const used = nodes.filter(({ role, ignored }) => !ignored && OPERATED.has(String(role?.value)))
  t.ok(used.length > 4, 'the tree is there')
  const nameless = used.filter(({ name }) => String(name?.value ?? '').trim() === '')
  t.same(
    nameless.map(({ role }) => role?.value),
    [],
    'nothing without a name',
  )
}

/** Has a page's clock stand in a zone of its own. */
export async function useZone(page: Page) {
  const session = await page.context().newCDPSession(page)
  await session.send('Emulation.setTimezoneOverride', { timezoneId: ZONE })
}

/** Instants are told relative to now; their title has the viewer's own zone, and UTC. */
export async function timesAreLocal(t: Test, page: Page): Promise<number> {
  const times = await page.locator('time').all()
  for (const time of times) {
    const iso = (await time.getAttribute('datetime')) ?? ''
    const title = (await time.getAttribute('title')) ?? ''
    t.match(title, / GMT\+5:30 · /)
    t.ok(title.endsWith(iso), title)
    if ((await time.getAttribute('data-exact')) === null) {
      t.match(
        await textOf(time),
        /^(just now|\d+ (minutes?|hours?) ago|yesterday \d\d:\d\d|\d+ days ago|.* GMT\+5:30)$/,
      )
    }
  }
  return times.length
}
