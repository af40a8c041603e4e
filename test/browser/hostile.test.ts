import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { addProvider, deliver, startHooks } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'
import { browse, headerText, send, textOf } from './pages.ts'

const SCRIPT = '<script>alert(1)</script>'
const IMAGE = '"><img src=x onerror=alert(1)>'
/** Turns the reading direction around and never turns it back. */
const OVERRIDE = '\u202Egpj.exe'
const LONG = 'x'.repeat(255)
const TYPES = [SCRIPT, IMAGE, OVERRIDE, LONG, "' onmouseover='alert(1)", '{{7*7}}${7*7}'] as const

/** Elements that only hostile text could have made. */
const MADE = 'main img, main script, main [onerror], main [onmouseover], main iframe'

await t.test('what a sender chose is text and nothing else', async (t: Test) => {
  const { base } = await startHooks(t, backends[0])
  await addProvider(base, 'shop', { open: true })
  // A dialog, a failed load of `x` and a broken policy each fail the test by themselves.
  const { page } = await browse(t, base)
  page.on('dialog', (dialog) => {
    t.fail(`a dialog opened: ${dialog.message()}`)
    void dialog.dismiss()
  })
  const inert = async (where: string): Promise<void> => {
    t.equal(await page.locator(MADE).count(), 0, `nothing was made of it ${where}`)
    t.ok(await staysInside(page), `no sideways scroll ${where}`)
  }

  await page.goto(`${base}/`)
  const events: Ack[] = []
  for (const type of TYPES) {
    const body = JSON.stringify({ id: `evt-${events.length}`, type, [type]: [type] })
    events.push((await deliver(base, 'payments', body)).json<Ack>())
  }
  for (const [at, type] of TYPES.entries()) {
    await t.test(`event type ${type.slice(0, 40)}`, async (t) => {
      const id = events[at]?.id ?? 0
      const link = page.locator(`tr[data-id="${id}"] [data-field="event_type"]`)
      await page.goto(`${base}/`)
      await link.waitFor()
      await inert('on the dashboard')
      t.equal(await link.textContent(), type)
      await page.goto(`${base}/log?event_type=${encodeURIComponent(type)}`)
      await inert('on the log')
      t.equal(await link.textContent(), type)
      t.equal(await page.getByRole('textbox', { name: 'Event type' }).inputValue(), type)
      t.equal(await page.locator('#log-results').getAttribute('data-log-type'), type)
      await link.click()
      await page.waitForURL(`${base}/log/${id}`)
      await inert('on its page')
      t.equal(await textOf(page.locator('h1')), `${type} verified`)
      t.match(await page.locator('pre.payload').first().textContent(), JSON.stringify(type))
    })
  }

  await t.test('rows of the live stream', async (t) => {
    await page.goto(`${base}/`)
    for (const type of [SCRIPT, IMAGE]) {
      const { id } = await send(base, 'generic/shop', type, { 'X-Event-Type': type })
      const link = page.locator(`tr[data-id="${id}"] [data-field="event_type"]`)
      await link.waitFor()
      t.equal(await link.textContent(), type)
    }
    await inert('in live rows')
  })

  await t.test('headers and payload', async (t) => {
    const body = `</code></pre></script>${SCRIPT}${IMAGE}${OVERRIDE}<!--`
    const headers = { 'X-One': SCRIPT, 'X-Two': IMAGE, 'X-Three': headerText(OVERRIDE) }
    const long = { 'X-Long': 'y'.repeat(6_000), 'X-Event-Type': headerText(OVERRIDE) }
    const { id } = await send(base, 'generic/shop', body, { ...headers, ...long })
    await page.goto(`${base}/log/${id}`)
    await inert('on its page')
    t.equal(await page.locator('pre.payload code').textContent(), body)
    const value = (name: string): ReturnType<Page['locator']> =>
      page.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }) })
    t.equal(await value('x-one').getByRole('cell').textContent(), SCRIPT)
    t.equal(await value('x-two').getByRole('cell').textContent(), IMAGE)
    t.match(await page.locator('#curl-command').textContent(), `-H 'x-one: ${SCRIPT}'`)
  })

  await t.test('an override ends with the type: what follows reads as ever', async (t) => {
    await page.goto(`${base}/log/${events[TYPES.indexOf(OVERRIDE)]?.id}`)
    const at = await page
      .locator('h1 .badge')
      .evaluate((badge: Boxed & { parentElement: Boxed }) => [
        badge.getBoundingClientRect().left,
        badge.parentElement.getBoundingClientRect().left,
      ])
    t.ok(Number(at[0]) > Number(at[1]) + 20, 'the badge stands right of the type')
  })
})

type Boxed = { getBoundingClientRect(): { left: number } }

async function staysInside(page: Page): Promise<boolean> {
  return page.evaluate<boolean>('document.scrollingElement.scrollWidth <= innerWidth')
}
