import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { startReceiver } from '../helpers/replays.ts'
import { keepSecret } from '../helpers/secrets.ts'
import {
  addProvider,
  deliver,
  eventIds,
  post,
  postForm,
  refusals,
  startHooks,
} from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'
import { browse, loadFailure, rowIds, send, tabTo, textOf } from './pages.ts'

const UTC = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/

/** Does something that loads a page; gives the status and makes sure that it is a whole page. */
async function loads(t: Test, page: Page, act: () => Promise<unknown>): Promise<number> {
  // A form's answer may lead to a page, which is what counts.
  const answer = page.waitForEvent(
    'response',
    (response) => response.request().isNavigationRequest() && response.status() !== 303,
  )
  const [response] = await Promise.all([answer, page.waitForEvent('load'), act()])
  t.ok(await page.locator('header nav').isVisible(), 'with the navigation')
  t.equal(await page.locator('h1').count(), 1, 'with its one heading')
  t.equal(await page.locator('footer').count(), 1, 'to its end')
  return response.status()
}

await t.test('every page works without script', async (t: Test) => {
  const { base } = await startHooks(t, backends[1])
  await addProvider(base, 'shop', { open: true })
  for (let count = 0; count < 7; count++) {
    const type = count % 2 === 0 ? 'order.paid' : 'order.open'
    await send(base, 'generic/shop', `{"n":${count}}`, { 'X-Event-Type': type })
  }
  await deliver(base, 'code_host', '{"a":1}')
  const all = await eventIds(base)
  const { page, secretShown } = await browse(t, base, {
    javaScriptEnabled: false,
    expectedErrors: [400, 404, 409, 422].map(loadFailure),
  })

  await t.test('dashboard', async (t) => {
    t.equal(await loads(t, page, () => page.goto(`${base}/`)), 200)
    t.same(await rowIds(page), all)
    t.match(
      await page.locator('#recent-rows time').allTextContents(),
      all.map(() => UTC),
    )
    t.equal(await page.locator('.js-only:visible').count(), 0, 'no button that can do nothing')
  })

  await t.test('log: filter, older entries, detail', async (t) => {
    await loads(t, page, () => page.getByRole('link', { name: 'Log', exact: true }).click())
    await page.getByLabel('Provider').selectOption('generic:shop')
    const filter = page.getByRole('button', { name: 'Filter' })
    t.equal(await loads(t, page, () => filter.click()), 200)
    const shop = all.slice(1)
    t.same(await rowIds(page), shop)
    await loads(t, page, () => page.goto(`${base}/log?provider=generic%3Ashop&limit=3`))
    t.equal(await loads(t, page, () => filter.click()), 200)
    t.same(await rowIds(page), shop.slice(0, 3))
    const older = page.getByRole('link', { name: 'Load older entries' })
    t.equal(await loads(t, page, () => older.click()), 200)
    t.same(await rowIds(page), shop.slice(3, 6))
    t.equal(await page.getByLabel('Provider').inputValue(), 'generic:shop')
    await loads(t, page, () => older.click())
    t.same(await rowIds(page), shop.slice(6))
    t.equal(await older.count(), 0)
    t.equal(await loads(t, page, () => page.locator('#log-rows a').click()), 200)
    t.equal(new URL(page.url()).pathname, `/log/${shop[6]}`)
    t.match(await textOf(page.locator('.json')), 'n: 0')
    await page.getByText('As sent').click()
    t.equal(await page.locator('#raw-payload pre').textContent(), '{"n":0}')
  })

  await t.test('log: type, rejected, what is refused', async (t) => {
    await loads(t, page, () => page.goto(`${base}/log`))
    const words = page.getByRole('combobox', { name: 'Filters' })
    await words.fill('type:order.open')
    t.equal(await loads(t, page, () => page.keyboard.press('Enter')), 200)
    t.equal((await rowIds(page)).length, 3)
    await page.getByLabel('Time').selectOption('Own days…')
    await page.getByLabel('First day').fill('2026-01-31')
    t.equal(await loads(t, page, () => words.press('Enter')), 200)
    t.equal((await rowIds(page)).length, 3)
    await words.fill('since:yesterday')
    t.equal(await loads(t, page, () => page.keyboard.press('Enter')), 400)
    t.match(await textOf(page.locator('main')), /Since must be an event id or a time/)
    t.equal(await loads(t, page, () => page.goto(`${base}/log/999999`)), 404)
    t.match(await textOf(page.locator('main')), /There is no event under this id/)
    t.equal((await post(base, 'code_host', '{}')).status, 401)
    await until(async () => (await refusals(base)).length === 1, 'the refusal')
    t.equal(await loads(t, page, () => page.goto(`${base}/log?rejected=1`)), 200)
    t.equal(await page.locator('#log-rows > tr').count(), 1)
  })

  await t.test('providers: toggle by mouse and keyboard', async (t) => {
    await loads(t, page, () => page.getByRole('link', { name: 'Providers' }).click())
    const toggle = page.getByRole('switch', { name: /^generic:shop/ })
    t.equal(await loads(t, page, () => toggle.click()), 200)
    t.equal(await toggle.getAttribute('aria-checked'), 'false')
    t.equal((await post(base, 'generic/shop', '{}')).status, 403)
    await tabTo(page, 'toggle-generic%3Ashop')
    t.equal(await loads(t, page, () => page.keyboard.press('Space')), 200)
    t.equal(await toggle.getAttribute('aria-checked'), 'true')
    await send(base, 'generic/shop')
    // The switch of a provider that somebody removed meanwhile.
    await addProvider(base, 'gone', { open: true })
    await page.goto(`${base}/providers`)
    const { status } = await removed(base, 'gone')
    t.equal(status, 200)
    const gone = page.getByRole('switch', { name: /^generic:gone/ })
    t.equal(await loads(t, page, () => gone.click()), 404)
    t.match(await textOf(page.locator('main')), /There is no provider "generic:gone"/)
  })

  await t.test('providers: create, rotate, remove', async (t) => {
    await page.goto(`${base}/providers`)
    await loads(t, page, () => page.getByRole('link', { name: 'New provider' }).click())
    const anySender = page.getByRole('link', { name: 'Any sender, with a token' })
    await loads(t, page, () => anySender.click())
    const add = page.getByRole('button', { name: 'Add provider' })
    const made = page.locator('#made-token')
    await page.getByLabel('Name').fill('ci')
    t.equal(await secretShown(() => loads(t, page, () => add.click())), 200)
    const token = keepSecret('page-token', await textOf(made))
    await loads(t, page, () => page.getByRole('link', { name: 'Look again' }).click())
    t.match(await textOf(page.locator('main')), /Waiting for the first delivery…/)
    await send(base, 'generic/ci', '{}', { Authorization: `Bearer ${token}` })
    await loads(t, page, () => page.goto(`${base}/providers`))
    t.equal(await made.count(), 0)
    await page.goto(`${base}/providers/generic%3Aci/first`)
    t.match(await textOf(page.locator('main')), /It has arrived/)
    await page.goto(`${base}/providers`)
    const card = page.locator('[data-provider="generic:ci"]')
    await card.locator('summary').first().click()
    await loads(t, page, () => card.getByRole('link', { name: 'Show all' }).click())
    await card.getByText('Rotate…').click()
    const rotate = card.getByRole('button', { name: 'Rotate secret' })
    t.equal(await secretShown(() => loads(t, page, () => rotate.click())), 200)
    const rotated = keepSecret('rotated-token', await textOf(made))
    t.not(rotated, token)
    t.match(await textOf(page.locator('#made')), /before you leave or reload this page/)
    // The browser posts the form again, with what the page showed before the rotation.
    t.equal(await loads(t, page, () => page.reload()), 409)
    t.match(await textOf(page.locator('main')), /was rotated since this page was loaded/)
    const headers = { Authorization: `Bearer ${rotated}` }
    t.equal((await post(base, 'generic/ci', '{}', headers)).status, 202, 'the secret still works')
    await loads(t, page, () => page.goto(`${base}/providers?open=generic:ci`))
    await card.getByText('Remove…').click()
    const remove = card.getByRole('button', { name: 'Remove generic:ci' })
    t.equal(await loads(t, page, () => remove.click()), 200)
    t.equal(await card.count(), 0)
  })

  await t.test('an event: sent on, refused, corrected', async (t) => {
    const receiver = await startReceiver(t)
    const { id } = await send(base, 'generic/shop')
    const result = page.locator('#attempts [role="status"]')
    await page.goto(`${base}/log/${id}`)
    await page.locator('#replay-menu > summary').click()
    await page.locator('#target_url').fill(`${receiver.url}/`)
    await page.locator('#replay-button').click()
    t.match(await textOf(result), /^Not delivered: the target is not on the public internet/)
    t.equal(receiver.connections(), 0)
    t.match(await textOf(page.locator('h1')), 'Event without type')
    await postForm(base, '/settings', { replay_default_target: `${receiver.url}/` })
    await page.goto(`${base}/log/${id}`)
    await page.locator('#replay-menu > summary').click()
    await page.locator('#replay-button').click()
    t.match(await textOf(result), /^Delivered: 204/)
    t.same(await page.locator('#attempt-rows .verify').allInnerTexts(), ['delivered', 'refused'])
    await page.locator('#replay-menu > summary').click()
    await page.locator('#target_url').fill('ftp://files.test/')
    await page.locator('#replay-button').click()
    t.match(await textOf(page.locator('#target_url-refused')), /must be an http/)
    t.equal(await page.locator('#target_url').inputValue(), 'ftp://files.test/')
  })
})

function removed(base: string, name: string): ReturnType<typeof postForm> {
  return postForm(base, `/providers/generic%3A${name}/remove`, {})
}
