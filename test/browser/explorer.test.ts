import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { startLinks } from '../helpers/links-setup.ts'
import { browse, untilText } from './pages.ts'

const WIDTHS = [1280, 390, 320] as const
const HREF = (link: { href: string }): string => link.href

// A violation of the policy, an error in script and a request to another origin fail these at once.

await t.test('the explorer of the links API', async (t: Test) => {
  const links = await startLinks(t, backends[1])
  const ann = await links.user('ann')
  const { page, secretShown, context } = await browse(t, links.base)
  await context.addInitScript({ path: join(import.meta.dirname, 'in-page.js') })

  await t.test('shows every group of operations, and fits each width', async (t) => {
    await page.goto(`${links.base}/api/docs`)
    await page.getByRole('heading', { name: /Gatehouse links/ }).waitFor()
    t.equal(await page.title(), 'Gatehouse links · Gatehouse')
    t.equal(await page.locator('.opblock').count(), 21)
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 })
      t.same(await page.evaluate('inPage.tooWide()'), [], `no sideways scroll at ${width} px`)
    }
    await page.setViewportSize({ width: 1280, height: 800 })
  })

  await t.test('try it out: with a token it makes a link', async (t) => {
    await page.getByRole('button', { name: 'Authorize' }).click()
    const dialog = page.locator('.modal-ux')
    await dialog.locator('input').fill(ann.token)
    await dialog.getByRole('button', { name: 'Apply credentials' }).click()
    await dialog.getByRole('button', { name: 'Close' }).first().click()

    const operation = page.locator('#operations-Links-createLink')
    await operation.locator('.opblock-summary-control').click()
    await operation.locator('textarea').fill('{"slug": "tried", "url": "https://example.com/"}')
    // Beside the answer it shows the call, with the token that was typed.
    await secretShown(() => operation.getByRole('button', { name: 'Execute' }).click())
    await untilText(operation.locator('.live-responses-table tbody .response-col_status'), /^201/)
    await untilText(operation.locator('.request-url pre'), `${links.base}/api/v1/links`)

    const { json } = await ann.api<{ links: readonly object[] }>('GET', '/links')
    t.match(json.links, [{ slug: 'tried', url: 'https://example.com/' }])
  })

  await t.test('an open operation fits a narrow window', async (t) => {
    await page.setViewportSize({ width: 390, height: 844 })
    t.same(await page.evaluate('inPage.tooWide()'), [])
  })
})

await t.test('calls go where the page is from, whatever the public address is', async (t: Test) => {
  const elsewhere = { LINKS_BASE_URL: 'https://go.example.com' }
  const links = await startLinks(t, backends[1], elsewhere)
  const { page } = await browse(t, links.base)
  await page.goto(`${links.base}/api/docs/`)
  const operation = page.locator('#operations-Config-getConfig')
  await operation.locator('.opblock-summary-control').click()
  await operation.getByRole('button', { name: 'Execute' }).click()
  await untilText(operation.locator('.live-responses-table tbody .response-col_status'), /^200/)
  t.match(await operation.locator('.live-responses-table').textContent(), /"short_keyword": "go"/)
})

await t.test('without script the page leads to the description', async (t: Test) => {
  const links = await startLinks(t, backends[1])
  const { page } = await browse(t, links.base, { javaScriptEnabled: false })
  await page.goto(`${links.base}/api/docs/`)
  const link = page.getByRole('link', { name: 'openapi.yaml' })
  t.equal(await link.evaluate(HREF), `${links.base}/api/openapi.yaml`)
})
