import { t } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { addProvider, postForm, startHooks } from '../helpers/signing-setup.ts'
import { browse, focusedId, loadFailure, send, tabTo, textOf, untilText } from './pages.ts'

const [embedded] = backends

/** What the list shows of each attempt, newest first. */
function outcomes(page: Page): Promise<readonly string[]> {
  return page.locator('#attempt-rows .verify').allInnerTexts()
}

/** The line that says what the last attempt came to. */
function said(page: Page): ReturnType<Page['locator']> {
  return page.locator('#attempts [role="status"]')
}

t.test('an event is sent on from its page', async (t) => {
  let answers = 0
  const receiver = await startReceiver(t, (_, response) => {
    answers += 1
    response.writeHead(answers === 2 ? 503 : 204).end()
  })
  const { base } = await startHooks(t, embedded, {
    HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
  })
  await addProvider(base, 'shop', { open: true })
  const { id } = await send(base, 'generic/shop', '{"total": 1}')
  const { page } = await browse(t, base, { expectedErrors: [loadFailure(422)] })
  await page.goto(`${base}/log/${id}`)

  await t.test('the browser asks for a target where there is no default', async (t) => {
    t.equal(await textOf(page.locator('#attempts')), 'It was not sent on yet.')
    await page.locator('#replay-button').click()
    t.equal(await focusedId(page), 'target_url')
    t.equal(await page.locator('#target_url:invalid').count(), 1)
    t.equal(receiver.connections(), 0)
  })

  await t.test('by keyboard, without a reload, and the form keeps what was typed', async (t) => {
    const target = `${receiver.url}/hook`
    await page.locator('main').evaluate((main: { dataset: { mark?: string } }) => {
      main.dataset.mark = 'kept'
    })
    await tabTo(page, 'target_url')
    await page.keyboard.type(target)
    await tabTo(page, 'replay-button')
    await page.keyboard.press('Enter')
    await untilText(said(page), /^Delivered: 204 in \d+ ms\.$/)
    t.equal(await focusedId(page), 'replay-button')
    t.equal(receiver.received[0]?.body.toString(), '{"total": 1}')
    await page.keyboard.press('Enter')
    await untilText(said(page), 'Not delivered: the target answered 503.')
    t.same(await outcomes(page), ['failed', 'delivered'])
    t.equal(await page.locator('#target_url').inputValue(), target)
    t.equal(await page.locator('main').getAttribute('data-mark'), 'kept')
    const times = await page
      .locator('#attempts time')
      .evaluateAll((list: readonly { title: string }[]) => list.map(({ title }) => title))
    for (const title of times) t.match(title, /UTC/, 'in the time zone of the reader')
  })

  await t.test('a refused target is in the list, a broken one above the page', async (t) => {
    await page.locator('#target_url').fill('http://10.0.0.1/')
    await page.locator('#replay-button').click()
    await untilText(said(page), /^Not delivered: the target is not on the public internet/)
    t.same(await outcomes(page), ['refused', 'failed', 'delivered'])
    await page.locator('#target_url').fill('ftp://files.test/')
    await page.locator('#replay-button').click()
    await untilText(page.locator('#problem'), /^The target URL must be an http/)
    t.equal((await outcomes(page)).length, 3)
  })

  await t.test('the default target needs no typing', async (t) => {
    await postForm(base, '/settings', { replay_default_target: `${receiver.url}/default` })
    await page.reload()
    t.same(await outcomes(page), ['refused', 'failed', 'delivered'], 'the list is kept')
    t.equal(await said(page).count(), 0)
    t.equal(
      await page.locator('#target_url').getAttribute('placeholder'),
      `${receiver.url}/default`,
    )
    await page.locator('#replay-button').click()
    await untilText(said(page), /^Delivered/)
    t.equal(receiver.received.at(-1)?.path, '/default')
  })

  await t.test('two quick clicks send once', async (t) => {
    const before = receiver.received.length
    await page.locator('#replay-button').dblclick()
    await untilText(page.locator('#attempt-rows tr >> nth=0'), /delivered/)
    await page.reload()
    t.equal(receiver.received.length, before + 1)
  })
})

t.test('an event is sent on without script', async (t) => {
  const receiver = await startReceiver(t)
  const { base } = await startHooks(t, embedded)
  await addProvider(base, 'shop', { open: true })
  const { id } = await send(base, 'generic/shop')
  const { page } = await browse(t, base, {
    javaScriptEnabled: false,
    expectedErrors: [loadFailure(422)],
  })
  await page.goto(`${base}/log/${id}`)
  await page.locator('#target_url').fill(`${receiver.url}/`)
  await page.locator('#replay-button').click()
  t.match(await textOf(said(page)), /^Not delivered: the target is not on the public internet/)
  t.equal(receiver.connections(), 0)
  t.match(await textOf(page.locator('h1')), 'Event without type')
  await postForm(base, '/settings', { replay_default_target: `${receiver.url}/` })
  await page.goto(`${base}/log/${id}`)
  await page.locator('#replay-button').click()
  t.match(await textOf(said(page)), /^Delivered: 204/)
  t.same(await outcomes(page), ['delivered', 'refused'])
  await page.locator('#target_url').fill('ftp://files.test/')
  await page.locator('#replay-button').click()
  t.match(await textOf(page.locator('#target-refused')), /^The target URL must be/)
  t.equal(await page.locator('#target_url').inputValue(), 'ftp://files.test/')
})
