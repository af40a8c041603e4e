import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { addProvider, post, startHooks } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'
import { browse, focusedId, loadFailure, send, tabTo, textOf, untilText } from './pages.ts'

const GENERIC = 'toggle-generic%3A'

function byId(page: Page, id: string): ReturnType<Page['locator']> {
  return page.locator(`[id="${id}"]`)
}

async function untilChecked(page: Page, id: string, checked: boolean): Promise<void> {
  const read = async (): Promise<boolean> =>
    (await byId(page, id).getAttribute('aria-checked')) === String(checked)
  await until(read, `the switch ${id} to be ${checked ? 'on' : 'off'}`)
}

/** The token that the page shows this one time. */
async function shownToken(page: Page): Promise<string> {
  const box = page.locator('#made-token')
  await box.waitFor()
  return keepSecret('made-token', await textOf(box))
}

function bearer(base: string, name: string, token: string): Promise<number> {
  const headers = token === '' ? {} : { Authorization: `Bearer ${token}` }
  return post(base, `generic/${name}`, '{}', headers).then(({ status }) => status)
}

await t.test('the switch of a provider', async (t: Test) => {
  const { base } = await startHooks(t, backends[0])
  await addProvider(base, 'shop', { open: true })
  const { page } = await browse(t, base)
  await page.goto(`${base}/providers`)
  const id = `${GENERIC}shop`
  const toggle = page.getByRole('switch', { name: /^generic:shop/ })

  await t.test('by mouse, with its effect at the receiver', async (t) => {
    t.equal(await toggle.getAttribute('id'), id, 'its name is that of the provider')
    await toggle.click()
    await untilChecked(page, id, false)
    t.equal(await textOf(toggle), 'Disabled')
    t.equal(await bearer(base, 'shop', ''), 403)
    t.equal(await focusedId(page), id)
    await toggle.click()
    await untilChecked(page, id, true)
    t.equal(await textOf(toggle), 'Enabled')
    await send(base, 'generic/shop')
    t.equal(new URL(page.url()).pathname, '/providers', 'without a full load')
  })

  await t.test('by keyboard; the focus stays on it', async (t) => {
    await page.goto(`${base}/providers`)
    await tabTo(page, id)
    let enabled = true
    for (const key of ['Space', 'Enter', 'Enter', 'Space']) {
      await page.keyboard.press(key)
      enabled = !enabled
      await untilChecked(page, id, enabled)
      t.equal(await focusedId(page), id, `after ${key}`)
      t.equal(await bearer(base, 'shop', ''), enabled ? 202 : 403)
    }
  })

  await t.test('of a signed provider', async (t) => {
    await tabTo(page, 'toggle-code_host')
    await page.keyboard.press('Space')
    await untilChecked(page, 'toggle-code_host', false)
    t.equal((await post(base, 'code_host', '{}')).status, 403)
    await page.reload()
    await untilChecked(page, 'toggle-code_host', false)
    await untilChecked(page, id, true)
    await page.goto(`${base}/`)
    t.ok(await page.locator('[data-provider="code_host"] [data-disabled]').isVisible())
    t.notOk(await page.locator('[data-provider="generic:shop"] [data-disabled]').isVisible())
  })
})

await t.test('a provider without its secret cannot be switched on', async (t) => {
  const { base } = await startHooks(t, backends[0], { HOOKS_CHAT_SECRET: '' })
  const { page } = await browse(t, base)
  await page.goto(`${base}/providers`)
  const card = page.locator('[data-provider="chat"]')
  t.ok(await card.getByRole('switch').isDisabled())
  t.match(await textOf(card), /Set HOOKS_CHAT_SECRET to the secret/)
})

await t.test('the life of a provider with a token', async (t: Test) => {
  const { base } = await startHooks(t, backends[1])
  const { page, secretShown } = await browse(t, base)
  await page.goto(`${base}/providers`)
  const card = page.locator('[data-provider="generic:a-b_c"]')
  let token = ''

  await t.test('created: the token is shown once, and works once enabled', async (t) => {
    token = await secretShown(async () => {
      await tabTo(page, 'create-name')
      await page.keyboard.type('a-b_c')
      await page.keyboard.press('Enter')
      return shownToken(page)
    })
    t.match(token, /^[\w-]{43}$/)
    t.equal(await focusedId(page), 'made', 'the focus is taken to it')
    t.match(await textOf(page.locator('#made')), /Copy it now: it is shown only this once\./)
    t.match(
      await textOf(page.locator('#made-curl')),
      `curl -X POST '${base}/webhooks/generic/a-b_c' \\ -H 'Authorization: Bearer ${token}'`,
    )
    t.equal(await page.locator('#create-name').inputValue(), '', 'the form is ready for another')
    t.equal(await bearer(base, 'a-b_c', token), 403, 'it starts disabled')
    await tabTo(page, `${GENERIC}a-b_c`)
    await page.keyboard.press('Space')
    await untilChecked(page, `${GENERIC}a-b_c`, true)
    t.equal(await bearer(base, 'a-b_c', token), 202)
    t.equal(await bearer(base, 'a-b_c', `${token}x`), 403)
  })

  await t.test('a reload shows it no more', async (t) => {
    await page.reload()
    t.ok(await card.isVisible())
    t.notMatch(await page.content(), token)
    t.equal(await page.locator('#made').count(), 0)
  })

  await t.test('rotated: the old token stops, the new one works', async (t) => {
    await card.getByText('Rotate or remove…').click()
    const overlap = card.getByLabel('The present one is accepted')
    t.equal(await overlap.inputValue(), '86400', 'the configured overlap is offered')
    await overlap.selectOption({ label: 'no longer' })
    const fresh = await secretShown(async () => {
      await card.getByRole('button', { name: 'Rotate secret' }).click()
      return shownToken(page)
    })
    t.not(fresh, token)
    t.equal(await focusedId(page), 'made')
    t.equal(await bearer(base, 'a-b_c', token), 403)
    t.equal(await bearer(base, 'a-b_c', fresh), 202)
    await page.reload()
    t.notMatch(await page.content(), fresh)
  })

  await t.test('removed only when that is confirmed; its events stay', async (t) => {
    const asked: string[] = []
    let sure = false
    page.on('dialog', (dialog) => {
      asked.push(dialog.message())
      void (sure ? dialog.accept() : dialog.dismiss())
    })
    await card.getByText('Rotate or remove…').click()
    const remove = card.getByRole('button', { name: 'Remove provider' })
    await remove.click()
    t.match(asked, [/^Remove generic:a-b_c\?/])
    await page.reload()
    t.ok(await card.isVisible(), 'after no')
    sure = true
    await card.getByText('Rotate or remove…').click()
    await remove.click()
    await card.waitFor({ state: 'detached' })
    t.equal(asked.length, 2)
    t.equal(await bearer(base, 'a-b_c', ''), 404)
    await page.goto(`${base}/log?provider=generic:a-b_c`)
    t.equal(await page.locator('#log-rows > tr').count(), 2)
  })
})

await t.test('an open provider needs the acknowledgement', async (t) => {
  const { base } = await startHooks(t, backends[0])
  const { page } = await browse(t, base, { expectedErrors: [loadFailure(422)] })
  await page.goto(`${base}/providers`)
  const name = page.getByLabel('Name')
  await name.fill('lan')
  await page.getByRole('radio', { name: /^Open/ }).check()
  await page.getByRole('button', { name: 'Add provider' }).click()
  await untilText(page.getByRole('alert'), /^An open provider takes anything .*acknowledge that/)
  t.equal(await name.inputValue(), 'lan', 'what was typed stays')
  t.ok(await page.getByRole('radio', { name: /^Open/ }).isChecked())
  t.equal(await bearer(base, 'lan', ''), 404)

  await page.getByRole('checkbox').check()
  await page.getByRole('button', { name: 'Add provider' }).click()
  await untilText(page.locator('#made-title'), 'generic:lan was created')
  t.equal(await page.locator('#made-token').count(), 0)
  t.equal(await page.getByRole('alert').count(), 0, 'the message is gone')
  t.equal(await bearer(base, 'lan', ''), 403)
  await page.getByRole('switch', { name: /^generic:lan/ }).click()
  await untilChecked(page, `${GENERIC}lan`, true)
  await send(base, 'generic/lan')
})

await t.test('names that are refused', async (t) => {
  const { base } = await startHooks(t, backends[0])
  await addProvider(base, 'shop', { open: true })
  const expectedErrors = [loadFailure(409), loadFailure(422)]
  const { page } = await browse(t, base, { expectedErrors })
  await page.goto(`${base}/providers`)
  const name = page.getByLabel('Name')
  const problem = page.getByRole('alert')
  const posts: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'POST') posts.push(request.url())
  })

  for (const [typed, message] of [
    ['shop', /^There is a provider "generic:shop" already/],
    ['chat', /^The name "chat" belongs to a signed provider/],
  ] as const) {
    await name.fill(typed)
    await name.press('Enter')
    await untilText(problem, message)
    t.equal(await name.inputValue(), typed)
  }
  t.equal(posts.length, 2)
  // The browser itself stops what can't be a name.
  for (const typed of ['', 'Shop', 'a b', '-a', 'é']) {
    await name.fill(typed)
    await name.press('Enter')
    t.equal(await page.locator('#create-name:invalid').count(), 1, `'${typed}'`)
  }
  t.equal(posts.length, 2)
  t.equal(await page.locator('[data-provider]').count(), 4)
})
