import { t } from 'tap'
import type { Page } from 'playwright-core'
import { postgres } from '../helpers/backends.ts'
import { addProvider, startHooks } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'
import { accessible } from './measure.ts'
import { browse, clickButton, loadFailure, rowIds, untilFocused, untilText } from './pages.ts'

// How somebody finds events again: by a search that was saved.

/** Its days begin when others are in the middle of theirs. */
const ZONE = 'Pacific/Kiritimati'
const { base, env } = await startHooks(t, postgres)
await addProvider(base, 'shop', { open: true })

const midnight = Temporal.Now.zonedDateTimeISO(ZONE).startOfDay()
const invoice = (customer: string) => JSON.stringify({ data: { customer_name: customer } })
/** Oldest first: type, payload, and the hours from the midnight with which this day began. */
const EVENTS: readonly (readonly [type: string, payload: string, hours: number])[] = [
  ['invoice.paid', invoice('Globex'), -25],
  ['invoice.paid', invoice('Initech'), -2],
  ['invoice.paid', invoice('Globex'), -1],
  ['order.paid', invoice('Globex'), -1],
  ['invoice.paid', invoice('Globex'), 0],
]
const rows = EVENTS.map(([type, payload, hours]) => {
  const at = midnight.add({ hours }).toInstant().toString()
  return `('generic:shop', '${type}', 3, '[]', convert_to('${payload}', 'UTF8'), '${at}')`
})
await postgres.query(
  env,
  `insert into hooks.events (provider, event_type, trust, headers, payload, received_at)
   values ${rows.join()}`,
)
await postgres.query(
  env,
  'insert into hooks.event_types select distinct provider, event_type from hooks.events',
)
async function untilRows(page: Page, ids: readonly number[]) {
  await until(async () => String(await rowIds(page)) === String(ids), `the rows ${String(ids)}`)
}

await t.test('a search is saved, and one click leads back to it', async (t) => {
  const { page } = await browse(t, base, {
    timezoneId: ZONE,
    expectedErrors: [loadFailure(409)],
  })
  const menu = page.locator('#saved-searches')
  await page.goto(`${base}/log`)
  await page.getByLabel('Time', { exact: true }).selectOption('Yesterday')
  await page.getByRole('combobox', { name: 'Filters' }).fill('customer:Globex')
  await untilRows(page, [4, 3])
  await untilText(page.locator('.zone'), ZONE)
  await menu.locator('summary').click()
  await page.getByLabel('Save these filters as').fill('Globex, yesterday')
  await page.keyboard.press('Enter')
  await untilText(page.locator('#done'), 'Saved Globex, yesterday.')
  const saved = menu.getByRole('link', { name: 'Globex, yesterday' })
  t.equal(await page.locator(':focus').textContent(), 'Globex, yesterday', 'it has the focus')
  await accessible(t, page)

  await t.test(
    'a taken name is said in one line below the field, which has the focus',
    async () => {
      await page.getByLabel('Save these filters as').fill('Globex, yesterday')
      await page.keyboard.press('Enter')
      const refused = 'There is a saved search "Globex, yesterday" already; choose another name.'
      await untilText(page.locator('#search-name-refused'), refused)
      await untilFocused(page, 'search-name')
      await page.getByLabel('Save these filters as').fill('Globex again')
      await clickButton(page, 'Save')
      await menu.getByRole('link', { name: 'Globex again' }).waitFor()
    },
  )

  await t.test('by the menu, and by the palette', async (t) => {
    await page.goto(`${base}/log`)
    await untilRows(page, [5, 4, 3, 2, 1])
    await menu.locator('summary').click()
    await saved.click()
    await untilRows(page, [4, 3])
    t.equal(await page.getByLabel('Time', { exact: true }).inputValue(), 'yesterday')
    await page.goto(base)
    await page.keyboard.press('Control+k')
    await page.locator('#palette input').fill('globex, y')
    await untilText(page.locator('#palette-list [aria-selected="true"]'), /^Globex, yesterday/)
    await page.keyboard.press('Enter')
    await untilRows(page, [4, 3])
  })
})
