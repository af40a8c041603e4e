import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { addProvider, deliver, eventIds, post, startHooks } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'
import { browse, focusedId, loadFailure, rowIds, send, textOf, untilText } from './pages.ts'

/** Path and query of the address bar. */
function address(page: Page): string {
  const { pathname, search } = new URL(page.url())
  return pathname + search
}

async function untilAddress(page: Page, wanted: string): Promise<void> {
  await until(() => address(page) === wanted, `the address ${wanted}`)
}

async function untilRows(page: Page, count: number): Promise<readonly number[]> {
  await until(async () => (await rowIds(page)).length === count, `${count} rows`)
  return rowIds(page)
}

const SHOP = 12

await t.test('the log in a browser', async (t: Test) => {
  const { base } = await startHooks(t, backends[0])
  await addProvider(base, 'shop', { open: true })
  const shop: number[] = []
  for (let count = 0; count < SHOP; count++) {
    const type = count % 3 === 0 ? 'order.paid' : 'order.open'
    shop.unshift((await send(base, 'generic/shop', '{}', { 'X-Event-Type': type })).id)
  }
  await deliver(base, 'code_host', '{"a":1}', { 'X-CodeHost-Event': 'push' })
  const all = await eventIds(base)
  const { page } = await browse(t, base, { expectedErrors: [loadFailure(400)] })
  await page.goto(`${base}/log`)
  t.same(await rowIds(page), all)
  const provider = page.getByLabel('Provider')
  const type = page.getByRole('textbox', { name: 'Event type' })
  const limit = page.getByLabel('Rows')

  await t.test('filters narrow the list and stand in the address', async (t) => {
    // A full load would wipe this mark away.
    await page.locator('h1').evaluate((h1: { title: string }) => (h1.title = 'kept'))
    await provider.selectOption('generic:shop')
    await untilAddress(page, '/log?provider=generic%3Ashop')
    t.same(await untilRows(page, SHOP), shop)
    await type.fill('order.paid')
    await type.press('Enter')
    await untilAddress(page, '/log?provider=generic%3Ashop&event_type=order.paid')
    t.same(
      await untilRows(page, 4),
      shop.filter((_, at) => at % 3 === 2),
    )
    t.same(await page.locator('#log-rows [data-field="event_type"]').allTextContents(), [
      'order.paid',
      'order.paid',
      'order.paid',
      'order.paid',
    ])
    await limit.fill('3')
    await page.getByRole('button', { name: 'Filter' }).click()
    await untilAddress(page, '/log?provider=generic%3Ashop&event_type=order.paid&limit=3')
    await untilRows(page, 3)
    t.equal(await page.locator('h1').getAttribute('title'), 'kept', 'without a full load')
  })

  await t.test('a copied address gives the same page', async (t) => {
    const before = await rowIds(page)
    await page.reload()
    t.same(await rowIds(page), before)
    t.equal(await provider.inputValue(), 'generic:shop')
    t.equal(await type.inputValue(), 'order.paid')
    t.equal(await limit.inputValue(), '3')
  })

  await t.test('back gives the earlier page whole, its fields too', async (t) => {
    await page.goBack()
    await untilAddress(page, '/log?provider=generic%3Ashop&event_type=order.paid')
    await untilRows(page, 4)
    t.equal(await limit.inputValue(), '50')
    await page.goBack()
    await untilAddress(page, '/log?provider=generic%3Ashop')
    t.same(await untilRows(page, SHOP), shop)
    t.equal(await type.inputValue(), '')
    t.equal(await provider.inputValue(), 'generic:shop')
    await page.locator('#log-rows a').first().click()
    await untilAddress(page, `/log/${shop[0]}`)
    t.equal(await page.getByRole('heading', { level: 1 }).count(), 1)
    await page.goBack()
    await untilAddress(page, '/log?provider=generic%3Ashop')
    t.same(await untilRows(page, SHOP), shop, 'the page, not the fragment of the same address')
    t.ok(await page.locator('header nav').isVisible())
    await page.getByRole('link', { name: 'Clear' }).click()
    await untilAddress(page, '/log')
    t.same(await untilRows(page, all.length), all)
    t.equal(await provider.inputValue(), '')
  })

  await t.test('older entries are appended, each once', async (t) => {
    await page.goto(`${base}/log?limit=5`)
    const link = page.locator('#log-more-link')
    t.same(await rowIds(page), all.slice(0, 5))
    await link.focus()
    await page.keyboard.press('Enter')
    t.same(await untilRows(page, 10), all.slice(0, 10))
    t.equal(await focusedId(page), 'log-more-link', 'the focus stays for the next press')
    // An event that comes meanwhile shifts no page.
    await send(base, 'generic/shop')
    await page.keyboard.press('Enter')
    t.same(await untilRows(page, all.length), all)
    await untilText(link, 'No older entries.')
    t.equal(await focusedId(page), 'log-more-link')
    t.equal(await page.locator('time:not([title])').count(), 0, 'local times in new rows as well')
  })

  await t.test('new events are told, not pushed in', async (t) => {
    await page.goto(`${base}/log?provider=generic%3Ashop&event_type=order.paid`)
    const before = await rowIds(page)
    await send(base, 'generic/shop', '{}', { 'X-Event-Type': 'order.open' })
    const { id } = await send(base, 'generic/shop', '{}', { 'X-Event-Type': 'order.paid' })
    await untilText(page.locator('#log-news'), '1 new event – show')
    t.same(await rowIds(page), before)
    await page.locator('#log-news a').click()
    t.same(await untilRows(page, before.length + 1), [id, ...before])
    t.equal(await textOf(page.locator('#log-news')), '')
    // What came before the stream was open is told as well, but nothing that the page shows: its rows may be newer
    // than its position.
    await page.route(
      '**/events?*',
      async (route) => {
        await send(base, 'generic/shop', '{}', { 'X-Event-Type': 'order.paid' })
        await route.continue({ url: `${base}/events?last_event_id=${id - 1}` })
      },
      { times: 1 },
    )
    await page.reload()
    await untilText(page.locator('#log-news'), '1 new event – show')
  })

  await t.test('nothing found, and a filter that is refused', async (t) => {
    await type.fill('never')
    await type.press('Enter')
    await untilText(page.locator('#log-results .empty strong'), 'No event matches these filters.')
    const since = page.getByLabel('Since')
    await since.fill('yesterday')
    await since.press('Enter')
    await untilText(page.getByRole('alert'), /^since must be an event id or a time/)
    t.equal(await since.inputValue(), 'yesterday')
    t.equal(await type.inputValue(), 'never')
    await page.goto(`${base}/log?limit=0`)
    await untilText(page.locator('main'), /400 Bad Request limit must be a whole number/)
  })

  await t.test('refused deliveries', async (t) => {
    await addProvider(base, 'ci')
    const wrong = await post(base, 'generic/ci', '{}', { Authorization: 'Bearer wrong-token' })
    t.equal(wrong.status, 403)
    t.equal((await post(base, 'code_host', '{}')).status, 401)
    await page.goto(`${base}/log`)
    const rows = page.locator('#log-rows > tr')
    const two = async (): Promise<boolean> => {
      await page.getByRole('link', { name: 'Rejected' }).click()
      return (await rows.count()) === 2
    }
    await until(two, 'both refusals')
    t.equal(await page.getByRole('link', { name: 'Rejected' }).getAttribute('aria-current'), 'page')
    t.match(await textOf(rows.nth(0)), /^code_host .*missing.* 401 127\.0\.0\./)
    t.match(await textOf(rows.nth(1)), /^generic:ci .*wrong.* 403 127\.0\.0\./)
    await provider.selectOption('generic:ci')
    await untilAddress(page, '/log?rejected=1&provider=generic%3Aci')
    await until(async () => (await rows.count()) === 1, 'one refusal')
    t.match(await textOf(rows), /^generic:ci/)
    await page.goto(`${base}/`)
    await page
      .locator('[data-provider="generic:ci"]')
      .getByRole('link', { name: '1 rejected' })
      .click()
    t.match(await textOf(rows), /^generic:ci/)
  })
})
