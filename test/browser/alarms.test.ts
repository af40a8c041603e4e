import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { addProvider, post, startHooks } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'
import { browse, focusedId, textOf } from './pages.ts'

await t.test('alarms in the browser', async (t: Test) => {
  const { base } = await startHooks(t, backends[0])
  await addProvider(base, 'ci')
  const { page } = await browse(t, base)
  const card = page.locator('article[data-provider="generic:ci"]')
  const tile = page.locator('.tile[data-provider="generic:ci"]')

  await t.test('set by keyboard on the card; the form stays open and says so', async (t) => {
    await page.goto(`${base}/providers`)
    await card.getByText('Alarms…').click()
    await card.getByLabel('An event at least every').fill('7 days')
    await page.keyboard.press('Enter')
    t.equal(await card.locator('input:invalid').count(), 1, 'the browser stops what is no duration')
    await card.getByLabel('An event at least every').fill('24h')
    await card.getByLabel('Refusals in 5 minutes').fill('3')
    await page.keyboard.press('Tab')
    t.equal(await focusedId(page), 'alarm-generic%3Aci')
    await page.keyboard.press('Enter')
    await card.getByRole('status').waitFor()
    t.equal(await textOf(card.getByRole('status')), 'Saved.')
    t.equal(await focusedId(page), 'alarm-generic%3Aci', 'the focus stays')
    t.match(await textOf(card), /silent after 24h; 3 refusals in 5 minutes/)
  })

  await t.test('a burst shows on the open dashboard, and its end too', async (t) => {
    await page.goto(`${base}/`)
    const badge = tile.getByText('many refused')
    t.notOk(await badge.isVisible())
    for (let n = 0; n < 3; n++) t.equal((await post(base, 'generic/ci', '{}')).status, 403)
    await badge.waitFor()
    t.notOk(await tile.getByText('silent', { exact: true }).isVisible())
    const other = await page.context().newPage()
    await other.goto(`${base}/providers`)
    t.ok(
      await other
        .locator('article[data-provider="generic:ci"]')
        .getByText('many refused')
        .isVisible(),
    )
    await other.locator('article[data-provider="generic:ci"]').getByText('Alarms…').click()
    await other.locator('[id="burst-generic%3Aci"]').fill('')
    await other.locator('[id="alarm-generic%3Aci"]').click()
    await until(async () => !(await badge.isVisible()), 'the badge to go')
    await other.close()
  })
})
