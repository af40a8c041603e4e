import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { startLinks } from '../helpers/links-setup.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'
import { browse, focusedId, loadFailure, tabTo, textOf, untilText } from './pages.ts'

await t.test('a token by mouse and keyboard', async (t: Test) => {
  const links = await startLinks(t, backends[0])
  const { page, context, secretShown } = await browse(t, links.base, {
    expectedErrors: [loadFailure(400)],
  })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const works = async (token: string): Promise<number> =>
    (await links.api(token)('GET', '/links')).status
  await page.goto(`${links.base}/-/`)
  await page.getByRole('navigation', { name: 'Main' }).getByText('Tokens').click()
  await page.getByText('You have no token.').waitFor()

  /** Does what makes a token, and gives it. */
  const made = (act: () => Promise<unknown>): Promise<string> =>
    secretShown(async () => {
      await act()
      await until(async () => (await focusedId(page)) === 'made', 'the focus on the token')
      return keepSecret('page-token', await textOf(page.locator('#made-token')))
    })

  const token = await made(async () => {
    await page.getByLabel('Name').fill('laptop "x" <b>')
    await page.getByRole('radio', { name: /^Read/ }).check()
    await page.getByLabel('Expires').selectOption('in a year')
    await page.getByRole('button', { name: 'Make token' }).click()
  })
  const card = page.getByRole('article', { name: 'laptop "x" <b>' })

  await t.test('it is shown with a button that copies it, and works', async (t) => {
    t.match(token, /^gh_[0-9A-Za-z]{43}$/)
    await page.getByRole('button', { name: 'Copy token' }).click()
    await page.getByRole('button', { name: 'Copied token' }).waitFor()
    t.equal(await page.evaluate('navigator.clipboard.readText()'), token)
    const curl = await textOf(page.locator('#made-curl'))
    t.equal(curl, `curl -H 'Authorization: Bearer ${token}' '${links.base}/api/v1/links'`)
    t.equal(await works(token), 200)
    t.match(await textOf(card), /Scope Read Expires .* Last used never/)
    t.equal(await page.locator('main b').count(), 0, 'its name is text')
  })

  await t.test('once: a reload shows it no more', async (t) => {
    await page.goto(page.url())
    t.equal(await page.locator('#made').count(), 0)
    t.notOk((await page.content()).includes(token))
    await until(async () => {
      await page.reload()
      return !(await textOf(card)).includes('Last used never')
    }, 'its use to be noted')
  })

  await t.test('revoked after a question, it works no more', async (t) => {
    const questions: string[] = []
    let answer = false
    page.on('dialog', (dialog) => {
      questions.push(dialog.message())
      void (answer ? dialog.accept() : dialog.dismiss())
    })
    await card.getByText('Revoke…').click()
    const revoke = card.getByRole('button', { name: 'Revoke laptop' })
    await revoke.click()
    await until(() => questions.length === 1, 'the question')
    t.match(questions[0], /^Revoke laptop "x" <b>\?/)
    t.equal(await works(token), 200, 'not when it is answered with no')
    answer = true
    await revoke.click()
    await page.getByText('You have no token.').waitFor()
    t.equal(await works(token), 401)
  })

  await t.test('by keyboard alone', async (t) => {
    await page.goto(`${links.base}/-/tokens`)
    const typed = await made(async () => {
      await tabTo(page, 'token-name')
      await page.keyboard.type('typed')
      await tabTo(page, 'create-token-button')
      await page.keyboard.press('Enter')
    })
    t.equal(await works(typed), 200)
    await page.reload()
    await page.locator('summary').focus()
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    page.removeAllListeners('dialog')
    page.once('dialog', (dialog) => void dialog.accept())
    await page.keyboard.press('Enter')
    await page.getByText('You have no token.').waitFor()
    t.equal(await works(typed), 401)
  })

  await t.test('what is refused is said beside the form, what was typed stays', async (t) => {
    const name = page.getByLabel('Name')
    await name.fill('   ')
    await page.getByRole('radio', { name: /^Create/ }).check()
    await name.press('Enter')
    await untilText(page.locator('#token-refused'), /^Name must have 1 to 100 characters/)
    t.equal(await name.inputValue(), '   ')
    t.ok(await page.getByRole('radio', { name: /^Create/ }).isChecked())
    await until(async () => (await focusedId(page)) === 'token-name', 'the focus on the field')
    t.equal(await page.locator('#problem').textContent(), '')
  })
})

await t.test('a token without script', async (t: Test) => {
  const links = await startLinks(t, backends[1])
  const { page, secretShown } = await browse(t, links.base, {
    javaScriptEnabled: false,
    expectedErrors: [loadFailure(400)],
  })
  const name = page.getByLabel('Name')
  await page.goto(`${links.base}/-/tokens`)
  t.equal(await page.locator('.js-only:visible').count(), 0)
  await name.fill('plain')
  const token = await secretShown(async () => {
    await name.press('Enter')
    return keepSecret('page-token', await textOf(page.locator('#made-token')))
  })
  t.ok(await page.getByRole('navigation', { name: 'Main' }).isVisible(), 'on the whole page')
  const call = links.api(token)
  t.equal((await call('GET', '/tokens')).status, 200)
  await page.goto(`${links.base}/-/tokens`)
  t.equal(await page.locator('#made').count(), 0)
  await name.fill(' ')
  await name.press('Enter')
  t.match(await textOf(page.locator('#token-refused')), /^Name must have/)
  await page.getByText('Revoke…').click()
  await page.getByRole('button', { name: 'Revoke plain' }).click()
  await page.getByText('You have no token.').waitFor()
  t.equal((await call('GET', '/tokens')).status, 401)
})
