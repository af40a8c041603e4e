import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { openPeer } from '../fixtures/forward-setup.ts'
import { backends } from '../helpers/backends.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startHooks } from '../helpers/signing-setup.ts'
import { browse, focusedId, loadFailure, send, textOf, untilText } from '../browser/pages.ts'
import { EMPTY, fillLong, fillOrdinary } from '../browser/sites.ts'
import type { Paths } from '../browser/sites.ts'

const WIDTHS = [1280, 390, 320] as const
const SCHEMES = ['light', 'dark'] as const
const LEAST_CONTRAST = 4.5
const LEAST_TARGET = 40
/** Half an hour off the full one, and never the day of UTC late in the evening. */
const ZONE = 'Asia/Kolkata'

/** Calls a function of in-page.js. */
function measure<T = readonly string[]>(page: Page, call: string): Promise<T> {
  return page.evaluate<T>(`inPage.${call}`)
}

/** Fits on every width, and is readable in both colour schemes. */
async function looksRight(t: Test, page: Page): Promise<void> {
  await measure(page, 'openDetails()')
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 })
    t.same(await measure(page, 'tooWide()'), [], `no sideways scroll at ${width} px`)
    const small = await measure(page, `smallTargets(${LEAST_TARGET})`)
    t.same(small, [], `high enough for a finger at ${width} px`)
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme })
      const low = await measure(page, `lowContrast(${LEAST_CONTRAST})`)
      t.same(low, [], `contrast at ${width} px, ${colorScheme}`)
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 })
  for (const kind of ['.primary', '.danger', ':not([class])']) {
    const [button] = await page.locator(`button${kind}:visible:enabled`).all()
    if (button === undefined) continue
    await button.hover()
    const low = await measure(page, `lowContrast(${LEAST_CONTRAST})`)
    t.same(low, [], `contrast of button${kind} under the mouse`)
  }
}

/** Each thing that can be used is reached by Tab, in both schemes with a visible focus. */
async function worksByKeyboard(t: Test, page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme })
  const faults: string[] = []
  for (let presses = 0; presses < 300; presses++) {
    await page.keyboard.press('Tab')
    const fault = await measure<string | null>(page, 'visit()')
    if (fault === null) break
    if (fault !== '') faults.push(fault)
  }
  t.same(faults, [], `focus shows, ${colorScheme}`)
  t.same(await measure(page, 'unvisited()'), [], 'Tab reaches everything')
}

/** Every role that a person operates has a name. */
async function namesAll(t: Test, page: Page): Promise<void> {
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

const OPERATED = new Set(
  'button link textbox searchbox combobox spinbutton checkbox radio switch DisclosureTriangle'.split(
    ' ',
  ),
)

/** Instants stand in the viewer's own zone; UTC is their title. */
async function timesAreLocal(t: Test, page: Page): Promise<number> {
  const format = new Intl.DateTimeFormat('en-US', {
    dateStyle: 'medium',
    timeStyle: 'medium',
    timeZone: ZONE,
  })
  const times = await page.locator('time').all()
  for (const time of times) {
    const iso = (await time.getAttribute('datetime')) ?? ''
    t.equal(await textOf(time), format.format(new Date(iso)).replace(/\s+/g, ' '))
    t.equal(await time.getAttribute('title'), `${iso} (UTC)`)
  }
  return times.length
}

await t.test('every page, with and without data', async (t: Test) => {
  const { base } = await startHooks(t, backends[1])
  // A violation of the content security policy and any error in script fail the test at once.
  const { page, context } = await browse(t, base, {
    expectedErrors: [loadFailure(404), loadFailure(422)],
  })
  await context.addInitScript({ path: join(import.meta.dirname, '..', 'browser', 'in-page.js') })
  const session = await context.newCDPSession(page)
  await session.send('Emulation.setTimezoneOverride', { timezoneId: ZONE })

  const visit = async (kind: string, paths: Paths): Promise<void> => {
    for (const [at, path] of paths.entries()) {
      await t.test(`${kind}: ${path.slice(0, 40)}`, async (t) => {
        await page.goto(base + path)
        t.same(await measure(page, 'structure()'), [])
        await namesAll(t, page)
        await timesAreLocal(t, page)
        await looksRight(t, page)
        await worksByKeyboard(t, page, SCHEMES[at % 2] ?? 'light')
      })
    }
  }
  await visit('empty', EMPTY)
  await visit('ordinary', await fillOrdinary(base))

  await t.test('skip link: the first press of Tab leads to the content', async (t) => {
    await page.goto(`${base}/log`)
    await page.keyboard.press('Tab')
    const skip = page.getByRole('link', { name: 'Skip to content' })
    t.match(await skip.boundingBox(), { width: Number, height: Number })
    t.ok(((await skip.boundingBox())?.height ?? 0) > 20, 'it shows while it has the focus')
    await page.keyboard.press('Enter')
    t.equal(await focusedId(page), 'main')
  })

  await t.test('a row of the live stream has a local time too', async (t) => {
    await page.goto(`${base}/`)
    const { id } = await send(base, 'generic/door-bell', '{}', { 'X-Event-Type': 'ring' })
    await page.locator(`#recent-rows > tr[data-id="${id}"]`).waitFor()
    t.ok((await timesAreLocal(t, page)) > 5)
    await looksRight(t, page)
  })

  const long = await fillLong(base)
  const forwarder = { target: 'http://localhost:3000/hook' }
  await openPeer(t, base, { ...forwarder, name: 'n'.repeat(200) })
  // One that is away has a form.
  const away = await openPeer(t, base, { ...forwarder, name: `${'a'.repeat(190)} away` })
  away.close()
  await away.closed
  await visit('long', long)
})

await t.test('what a page says after a form was sent', async (t: Test) => {
  const { base } = await startHooks(t, backends[1])
  const { page, context, secretShown } = await browse(t, base, {
    expectedErrors: [loadFailure(422)],
  })
  await context.addInitScript({ path: join(import.meta.dirname, '..', 'browser', 'in-page.js') })

  await t.test('settings saved, and refused', async (t) => {
    await page.goto(`${base}/settings`)
    await page.getByRole('button', { name: 'Save settings' }).click()
    await untilText(page.getByRole('status'), /^Saved/)
    await looksRight(t, page)
    await page.locator('#replay_default_target').fill('ftp://example.com')
    await page.keyboard.press('Enter')
    await untilText(page.getByRole('alert'), /^replay_default_target/)
    await looksRight(t, page)
    t.same(await measure(page, 'structure()'), [])
  })

  await t.test('provider made', async (t) => {
    await page.goto(`${base}/providers`)
    await page.getByLabel('Name').fill('made')
    await secretShown(async () => {
      await page.keyboard.press('Enter')
      keepSecret('layout-token', await textOf(page.locator('#made-token')))
    })
    await looksRight(t, page)
    t.same(await measure(page, 'structure()'), [])
  })
})
