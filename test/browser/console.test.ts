import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { addProvider, SIGNED_ENV } from '../helpers/hooks.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { browse, clickCopy, rowIds, send, untilText } from './pages.ts'

// What the pages of all services share: the header, the keys, copying, and the way back.

const [, postgres] = backends
const server = await startServer(t, { env: { ...SIGNED_ENV, ...(await postgres.env(t)) } })
const { hooks, links, ops } = server
await addProvider(hooks, 'shop', { open: true })
for (let n = 0; n < 9; n++) await send(hooks, 'generic/shop', `{"n":${n}}`)

/** The id of the row whose link has the focus. */
function focusedRow(page: Page): Promise<string | null> {
  return page.evaluate<string | null>(
    `document.activeElement.closest('tr[data-id]')?.dataset.id ?? null`,
  )
}

await t.test('the header leads to the services that run, also without script', async (t: Test) => {
  const { page } = await browse(t, hooks, {
    origins: [hooks, links, ops],
    javaScriptEnabled: false,
  })
  await page.goto(hooks)
  const services = page.getByRole('navigation', { name: 'Services' })
  t.same(await services.getByRole('link').allTextContents(), ['Hooks', 'Links', 'Ops'])
  await services.getByRole('link', { name: 'Ops' }).click()
  await page.waitForURL(`${ops}/`)
  t.equal(await services.locator('[aria-current]').textContent(), 'Ops')

  await page.setViewportSize({ width: 390, height: 800 })
  const entry = page.getByRole('navigation', { name: 'Main' }).getByText('Sessions')
  t.notOk(await entry.isVisible(), 'on a narrow screen the navigation is folded')
  await page.getByRole('button', { name: 'Menu' }).click()
  await entry.click()
  await page.waitForURL(`${ops}/sessions`)
})

await t.test('a stranger learns no address of another service', async (t: Test) => {
  const headers = { accept: 'text/html', 'x-forwarded-for': '192.0.2.7' }
  const text = await (await fetch(`${links}/nothing-here`, { headers })).text()
  t.notMatch(text, hooks)
  t.notMatch(text, ops)
})

await t.test('keys: rows, search, pages, and what the keys are', async (t: Test) => {
  const { page } = await browse(t, hooks)
  await page.goto(`${hooks}/log`)
  const ids = await rowIds(page)
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  t.equal(await focusedRow(page), String(ids[1]))
  await page.keyboard.press('k')
  t.equal(await focusedRow(page), String(ids[0]))
  await page.keyboard.press('/')
  await page.keyboard.type('j?gl')
  t.equal(await page.evaluate(`document.activeElement.value`), 'j?gl', 'typed, not obeyed')
  await page.locator('h1').click()

  await page.keyboard.press('?')
  const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  await untilText(keys.locator('dd').first(), 'Search')
  const one = keys.getByRole('checkbox', { name: /^Keys of one letter/ })
  await one.uncheck()
  await page.keyboard.press('Escape')
  await page.reload()
  await page.keyboard.press('j')
  await page.keyboard.press('?')
  t.equal(await focusedRow(page), null, 'turned off, also after a reload')
  t.equal(await keys.count(), 0)
  await page.getByRole('button', { name: 'Keyboard shortcuts' }).click()
  await one.check()
  await page.keyboard.press('Escape')
  // The second key counts within 1.5 s of the first one.
  await until(async () => {
    await page.keyboard.type('gp')
    await page.waitForURL(`${hooks}/providers`, { timeout: 5_000 })
    return true
  }, 'the page of providers')
})

await t.test('the whole row opens it; Back shows the rows that were loaded', async (t: Test) => {
  const { page } = await browse(t, hooks)
  await page.setViewportSize({ width: 1100, height: 500 })
  await page.goto(`${hooks}/log?limit=3`)
  const more = page.getByRole('link', { name: 'Load older entries' })
  for (const count of [6, 9]) {
    await more.click()
    await until(async () => (await rowIds(page)).length === count, `${count} rows`)
  }
  const ids = await rowIds(page)
  const row = page.locator(`tr[data-id="${ids[7]}"]`)
  // Beside the link's text, in the last cell, which the link covers.
  await row.locator('td').last().click({ force: true })
  await page.waitForURL(`${hooks}/log/${ids[7]}`)
  await page.goBack()
  await until(async () => (await rowIds(page)).length === 9, 'the rows of before')
  t.same(await rowIds(page), ids)
})

await t.test('copying works without https, and says when it failed', async (t: Test) => {
  const { page } = await browse(t, hooks)
  // As on a plain http site: no clipboard.
  await page.addInitScript(`
    delete Navigator.prototype.clipboard
    document.execCommand = () => { window.copied = getSelection().toString(); return true }`)
  await page.goto(`${hooks}/log/1?tab=curl`)
  const copy = page.getByRole('button', { name: /^Cop(y|ied) curl command/ })
  const command = await page.locator('#curl-command').textContent()
  await clickCopy(copy, page.getByRole('button', { name: 'Copied curl command' }))
  t.equal(await page.evaluate(`window.copied`), command?.trim())
  await page.evaluate(`document.execCommand = () => false`)
  await copy.click()
  await untilText(page.locator('#problem'), /^Not copied: .* press Ctrl\+C/)
})

await t.test('times are told relative to now, and kept so', async (t: Test) => {
  const { page } = await browse(t, hooks)
  await page.clock.install({ time: Date.now() + 3 * 60_000 })
  await page.goto(`${hooks}/log`)
  const time = page.locator('tbody time').first()
  await untilText(time, /^\d minutes ago$/)
  t.match(await time.getAttribute('title'), / · \d{4}-.*Z$/)
  await page.clock.runFor(2 * 3_600_000)
  await untilText(time, /^2 hours ago$/)
})

await t.test('every bar of a chart has a value to hover over', async (t: Test) => {
  const { page } = await browse(t, hooks)
  await page.goto(hooks)
  const bars = await page.locator('.chart g').count()
  t.ok(bars >= 24)
  t.equal(await page.locator('.chart g:has(title):has(.hit)').count(), bars)
})
