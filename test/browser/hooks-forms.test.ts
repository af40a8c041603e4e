import { createHmac } from 'node:crypto'
import { t } from 'tap'
import type { Locator } from 'playwright-core'
import { postgres } from '../helpers/backends.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { addProvider, deliver, post, SECRETS, startHooks } from '../helpers/hooks.ts'
import { change, secretKey } from '../helpers/senders.ts'
import { until } from '../helpers/until.ts'
import {
  browse,
  clickButton,
  clickLink,
  copiedOn,
  focusedId,
  loadFailure,
  rememberCopies,
  send,
  textOf,
  untilFocused,
  untilText,
} from './pages.ts'

/** One service for all tests of this file; the chat provider has no secret at first. */
const { base } = await startHooks(t, postgres, {
  HOOKS_CHAT_SECRET: '',
  GATEHOUSE_SECRET_KEY: secretKey(),
})
const { page, context, secretShown } = await browse(t, base, {
  expectedErrors: [loadFailure(422)],
})
await rememberCopies(context)

/** Opens the row of a provider; what it opens to is loaded then. */
async function openCard(row: Locator) {
  await row.locator('summary').first().click()
  await row.locator('dl').waitFor()
}

/** The token that the page shows this one time. */
async function shownToken() {
  const box = page.locator('#made-token')
  await box.waitFor()
  return keepSecret('made-token', await textOf(box))
}

function bearer(name: string, token: string) {
  const headers = token === '' ? {} : { Authorization: `Bearer ${token}` }
  return post(base, `generic/${name}`, '{}', headers).then(({ status }) => status)
}

await t.test('the first webhook: a URL with one click, verified later', async (t) => {
  await page.goto(`${base}/`)
  await clickButton(page, 'Create a URL')
  await page.waitForURL(/\/first/)
  const url = await textOf(page.locator('#made-url'))
  t.match(url, `${base}/webhooks/generic/url-`)
  t.match(await textOf(page.locator('#made-curl')), `curl ${url} `)
  const first = page.locator('#first-delivery')
  await untilText(first, /Waiting for the first delivery…/)

  const receiver = new URL(url).pathname.replace('/webhooks/', '')
  await send(base, receiver, '{}', { 'User-Agent': 'try/1' })
  await untilText(first, /of no sender that Gatehouse knows; it calls itself try\/1/)
  const headers = { 'X-GitHub-Event': 'push', 'X-Hub-Signature-256': 'sha256=0' }
  const { id } = await send(base, receiver, '{"zen": 1}', headers)
  await untilText(first, /It looks like GitHub/)
  t.equal(await first.locator(`tr[data-id="${id}"] .verify`).innerText(), 'unchecked')

  await clickLink(first, 'Verify it')
  await page.waitForURL(/\/verify\?scheme=github$/)
  t.equal(await textOf(page.locator('#new-url')), url, 'the URL stays')
  const key = secret('github')
  await page.getByLabel(/^Secret/).fill(key)
  await clickButton(page, 'Verify deliveries')
  await page.locator('#done').filter({ hasText: 'Saved generic:url-' }).waitFor()
  t.equal((await post(base, receiver, '{}', headers)).status, 403)
  const signature = createHmac('sha256', key).update('{"zen": 2}').digest('hex')
  const signed = { ...headers, 'X-Hub-Signature-256': `sha256=${signature}` }
  const { id: next } = await send(base, receiver, '{"zen": 2}', signed)
  const row = first.locator(`tr[data-id="${next}"]`)
  await row.waitFor()
  t.equal(await row.locator('.verify').innerText(), 'verified')
  t.equal(await row.locator('.type').innerText(), 'push')
  t.equal(await first.getByText('Verify it').count(), 0)
})

await t.test('the switch of a provider', async (t) => {
  await addProvider(base, 'shop', { open: true })
  await page.goto(`${base}/providers`)
  const toggle = page.getByRole('switch', { name: /^generic:shop/ })
  for (const [state, status] of [
    ['Disabled', 403],
    ['Enabled', 202],
  ] as const) {
    await toggle.click()
    await untilText(toggle, state)
    t.equal(await toggle.getAttribute('aria-checked'), String(state === 'Enabled'))
    t.equal(await bearer('shop', ''), status)
    t.equal(await focusedId(page), 'toggle-generic%3Ashop')
  }
  t.equal(new URL(page.url()).pathname, '/providers', 'without a full load')
})

await t.test('a provider without its secret cannot be switched on', async (t) => {
  await page.goto(`${base}/providers`)
  const card = page.locator('[data-provider="chat"]')
  t.ok(await card.getByRole('switch').isDisabled())
  t.match(await textOf(card), /not set up: open it to set its secret/)

  await t.test('until it is set in its row: the first signed delivery comes in', async (t) => {
    await openCard(card)
    await card.getByText('Set the secret…').click()
    const field = card.getByLabel('Secret that the sender made')
    await field.fill('short')
    await page.keyboard.press('Enter')
    await untilText(card.locator('.refused'), /^The secret must be 8 to 256/)
    t.equal(await field.inputValue(), '', 'a secret is not shown again')
    t.equal(await focusedId(page), 'rotate-chat-secret')
    await field.fill(SECRETS.chat)
    await page.keyboard.press('Enter')
    await untilText(page.locator('#made-title'), 'chat has its new secret')
    t.ok(await card.getByRole('switch').isEnabled())
    t.equal((await deliver(base, 'chat', '{"type": "ping"}')).status, 202)
  })
})

await t.test('the life of a provider with a token', async (t) => {
  await page.goto(`${base}/providers`)
  const card = page.locator('[data-provider="generic:a-b_c"]')
  let token = ''

  await t.test('created: the token is shown once, and works at once', async (t) => {
    await clickLink(page, 'New provider')
    await page.getByRole('link', { name: 'Any sender, with a token' }).click()
    await page.waitForURL(/\/providers\/new\?/)
    token = await secretShown(async () => {
      await untilFocused(page, 'create-name')
      await page.keyboard.type('a-b_c')
      await page.keyboard.press('Enter')
      return shownToken()
    })
    await untilFocused(page, 'made')
    const first = page.locator('#first-delivery')
    t.equal(await bearer('a-b_c', `${token}x`), 403)
    await untilText(first, /A delivery was refused with 403, .*wrong token/)
    t.equal(await bearer('a-b_c', token), 202)
    await untilText(first, /It has arrived/)
    t.equal(await page.locator('#made-token').count(), 1, 'the token stays in sight')
    await page.goto(`${base}/providers`)
  })

  await t.test('a reload shows it no more', async (t) => {
    await page.reload()
    t.ok(await card.isVisible())
    t.notMatch(await page.content(), token)
    t.equal(await page.locator('#made').count(), 0)
  })

  await t.test('rotated: the old token stops, the new one works', async (t) => {
    await openCard(card)
    await card.getByText('Rotate…').click()
    await card.getByLabel('The current one is accepted').selectOption('no longer')
    // The answer comes late, and the button is clicked again meanwhile.
    const held = Promise.withResolvers<void>()
    let posts = 0
    await page.route('**/rotate', async (route) => {
      posts++
      await held.promise
      await route.continue()
    })
    const fresh = await secretShown(async () => {
      const rotate = card.getByRole('button', { name: 'Rotate secret' })
      await rotate.click()
      await until(() => posts === 1, 'the first post')
      await rotate.click()
      held.resolve()
      return shownToken()
    })
    t.not(fresh, token)
    await untilFocused(page, 'made')
    t.equal(await bearer('a-b_c', token), 403)
    t.equal(await bearer('a-b_c', fresh), 202)
    await page.reload()
    await page.unroute('**/rotate')
    t.equal(posts, 1, 'the second click posted nothing')
  })

  await t.test('removed only when that is confirmed', async (t) => {
    const asked: string[] = []
    let sure = false
    page.on('dialog', (dialog) => {
      asked.push(dialog.message())
      void (sure ? dialog.accept() : dialog.dismiss())
    })
    await openCard(card)
    await card.getByText('Remove…').click()
    const remove = card.getByRole('button', { name: 'Remove generic:a-b_c' })
    await remove.click()
    t.match(asked, [/^Remove generic:a-b_c\?/])
    await page.reload()
    t.ok(await card.isVisible(), 'after no')
    sure = true
    await openCard(card)
    await card.getByText('Remove…').click()
    await remove.click()
    await card.waitFor({ state: 'detached' })
    t.equal(await bearer('a-b_c', ''), 404)
  })
})

await t.test('an open provider needs the acknowledgement', async (t) => {
  await page.goto(`${base}/providers/new?name=lan`)
  await page.getByRole('link', { name: 'Any sender, unchecked' }).click()
  const add = page.getByRole('button', { name: 'Add provider' })
  await add.click()
  t.equal(await page.locator('input[name=acknowledge_open]:invalid').count(), 1)
  await page.getByRole('checkbox', { name: /^I know that anybody/ }).check()
  await add.click()
  await untilText(page.locator('#made-title'), 'generic:lan was created')
})

await t.test(
  'a sender is found by its name, and its URL is copied before it is made',
  async (t) => {
    await page.goto(`${base}/providers/new`)
    await untilFocused(page, 'sender-tiles-find')
    await page.keyboard.type('shop')
    await clickLink(page, 'Shopify')
    await page.waitForURL(/\/providers\/new\?/)
    await clickButton(page, 'Copy URL')
    const url = `${base}/webhooks/generic/shopify`
    await until(async () => (await copiedOn(page)) === url, 'the URL to be copied')
    // The name becomes part of the URL while it is typed.
    const name = page.getByLabel('Name')
    await name.fill('second-shop')
    t.equal(await textOf(page.locator('#new-url')), `${base}/webhooks/generic/second-shop`)
    await page.goto(`${base}/providers/new?name=shoop`)
    await page.getByRole('link', { name: 'GitHub', exact: true }).click()
    t.equal(await name.inputValue(), 'shoop', 'as the address says')
  },
)

await t.test('methods and answer: chosen with a new provider, and changed', async (t) => {
  await page.goto(`${base}/providers/new?scheme=token`)
  await page.getByLabel('Name').fill('site')
  const form = page.locator('#create-provider')
  await form.getByText('Methods and answer…').click()
  await form.getByRole('checkbox', { name: 'GET' }).check()
  await form.getByRole('checkbox', { name: 'POST' }).uncheck()
  const label = 'Status of the answer'
  await form.getByLabel(label).fill('204')
  await form.getByLabel('Body of the answer').fill('{"ok": true}')
  await clickButton(page, 'Add provider')
  await untilText(form.locator('.refused'), /^Body of the answer must be empty/)
  t.ok(await form.getByRole('checkbox', { name: 'GET' }).isChecked(), 'what was chosen stays')
  await form.getByLabel(label).fill('')
  await clickButton(page, 'Add provider')
  await untilText(page.locator('#made-title'), 'Secret of generic:site')

  const card = page.locator('article[data-provider="generic:site"]')
  await page.goto(`${base}/providers`)
  await openCard(card)
  await card.getByText('Methods and answer…').click()
  await card.getByLabel(label).fill('302')
  await page.keyboard.press('Enter')
  t.equal(await card.locator('input:invalid').count(), 1, 'the browser stops what is no status')
  await card.getByLabel(label).fill('503')
  await clickButton(card, 'Save answer of generic:site')
  await untilText(page.locator('#done'), 'Saved.')
  t.equal(await focusedId(page), 'answer-generic%3Asite', 'the focus stays')
  t.match(await textOf(card), /503, text\/plain, .* sends them again/)
})

await t.test('an alarm shows on the open dashboard, and its end too', async (t) => {
  await addProvider(base, 'ci')
  const alarm = async (rejection_burst: string) =>
    t.equal((await change(base, 'generic:ci', 'alarm', { rejection_burst })).status, 200)
  await alarm('3')
  await page.goto(`${base}/`)
  const badge = page.locator('tr[data-provider="generic:ci"]').getByText('many refused')
  t.notOk(await badge.isVisible())
  for (let n = 0; n < 3; n++) t.equal((await post(base, 'generic/ci', '{}')).status, 403)
  await badge.waitFor()
  await alarm('')
  await badge.waitFor({ state: 'hidden' })
})

await t.test('settings: refused beside the field, corrected, saved', async (t) => {
  const target = page.locator('#replay_default_target')
  const retry = page.locator('#sse_retry_ms')
  await page.goto(`${base}/settings`)
  await retry.fill('5000')
  await target.fill('ftp://example.com/hook')
  await page.keyboard.press('Enter')
  await untilText(page.locator('.refused'), /^Default target must be an http:\/\//)
  t.equal(await target.inputValue(), 'ftp://example.com/hook')
  t.equal(await retry.inputValue(), '5000')
  await target.fill('')
  await page.keyboard.press('Enter')
  await untilText(page.locator('#done'), /^Saved\./)
  t.equal(await page.getByRole('alert').count(), 0)
  await page.reload()
  t.equal(await retry.inputValue(), '5000')
})
