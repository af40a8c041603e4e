import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { identity, makeLink, startPages, type Caller } from '../helpers/links.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'
import {
  browse,
  clickButton,
  clickCopy,
  clickLink,
  copiedOn,
  loadFailure,
  rememberCopies,
  tabTo,
  textOf,
  untilFocused,
  untilText,
} from './pages.ts'

/** One service for all tests of this file, each with users of its own. */
const links = await startPages(t, postgres)
const { page } = await browse(t, links.base, { expectedErrors: [400, 403].map(loadFailure) })

async function roleOf({ api }: Caller) {
  return (await api<{ role: string }>('GET', '/users/me')).json.role
}

/** The questions of the page, which are answered with yes. */
const questions: string[] = []
page.on('dialog', (dialog) => {
  questions.push(dialog.message())
  void dialog.accept()
})

await t.test('users by mouse and keyboard', async (t) => {
  const eve = await links.user('eve', { admin: true })
  const ann = await links.user('ann')
  await page.setExtraHTTPHeaders(identity(eve.email))
  const row = (email: string) => page.getByRole('row').filter({ hasText: email })
  await page.goto(`${links.base}/-/`)
  await page.getByRole('navigation', { name: 'Main' }).getByText('Admin').click()
  await page.waitForURL(`${links.base}/-/admin/users`)

  await t.test('an admin is made: disclosed, asked, said', async (t) => {
    await row(ann.email).getByText('Make admin…').click()
    await row(ann.email)
      .getByRole('button', { name: `Make ${ann.email} an admin` })
      .click()
    await untilText(row(ann.email).getByRole('status'), 'Is an admin now.')
    t.match(questions.at(-1), `Make ${ann.email} an admin?`)
    t.equal(await roleOf(ann), 'admin')
    const focused = await textOf(page.locator(':focus'))
    t.equal(focused, 'Is an admin now.', 'the focus stays at the row')
  })

  await t.test('a user is added; what is refused stays in the form', async (t) => {
    await tabTo(page, 'user-email')
    await page.keyboard.type('Bob@Example.com')
    await tabTo(page, 'add-user-button')
    await page.keyboard.press('Enter')
    await untilText(page.locator('#users > .saved'), 'bob@example.com is a user now.')
    const email = page.getByLabel('E-mail')
    t.equal(await email.inputValue(), '')
    await email.fill('bob@example.com')
    await email.press('Enter')
    await untilText(
      page.locator('#user-email-refused'),
      /^There is a user with this e-mail address/,
    )
    t.equal(await email.inputValue(), 'bob@example.com')
  })

  await t.test("one's own role needs a tick and a yes, and leads away", async (t) => {
    await row(eve.email).getByText('Give up admin…').click()
    const button = page.getByRole('button', { name: 'Give up admin' })
    const asked = questions.length
    await button.click()
    t.equal(await page.locator('[name=acknowledge_own]:invalid').count(), 1, 'the browser asks')
    t.equal(questions.length, asked)
    await page.getByRole('checkbox', { name: 'I give up my own admin role' }).check()
    await button.click()
    await page.waitForURL(`${links.base}/-/`)
    t.match(questions.at(-1), /your own admin role/)
    t.equal(await roleOf(eve), 'user')
  })
})

await t.test('links of everybody: chosen ones get a co-owner', async () => {
  const gus = await links.user('gus', { admin: true })
  const hana = await links.user('hana')
  for (const slug of ['n-10', 'n-11', 'n-12']) await makeLink(hana, slug)
  await page.setExtraHTTPHeaders(identity(gus.email))
  await page.goto(`${links.base}/-/admin/links`)
  await page.getByLabel('Choose n-10').check()
  await page.getByLabel('Choose n-11').check()
  await clickButton(page, 'Add a co-owner…')
  await page.getByRole('heading', { name: 'Add a co-owner to 2 links' }).waitFor()
  await page.locator('#owners-email').fill(gus.email)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: `${gus.email} is now a co-owner of 2 links` }).waitFor()
  await untilFocused(page, 'chosen-title')
  await clickLink(page, 'Links of everybody')
  await page.getByLabel('Slug begins with').pressSequentially('n-12')
  await page.waitForURL(/\?q=n-12$/)
  await clickLink(page, 'Delete n-12')
  await page.locator('#delete-link').click()
  await page.waitForURL(`${links.base}/-/`)
})

await t.test('a file of another program: previewed, then imported', async (t) => {
  const ida = await links.user('ida', { admin: true })
  await page.setExtraHTTPHeaders(identity(ida.email))
  await page.goto(`${links.base}/-/admin/import`)
  const file = 'keyword;url;title;clicks\r\nhandbook;https://handbook.test/;"The; book";7\r\n'
  await page.getByLabel('File').setInputFiles({
    name: 'yourls.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from(file),
  })
  await clickButton(page, 'Preview')
  const row = page.locator('#previewed tr')
  await untilText(row, /handbook.*The; book.*https:\/\/handbook\.test\//s)
  const column = page.getByRole('row', { name: /^clicks/ })
  await untilText(column, /not taken over/)
  t.equal((await ida.get('/handbook')).status, 404, 'nothing is written yet')
  await clickButton(page, 'Import 1 link')
  await untilText(
    page.locator('main [role="status"]'),
    /Imported 1 link of 1 from a file of YOURLS/,
  )
  t.match(await ida.get('/handbook'), { headers: { location: 'https://handbook.test/' } })
})

await t.test('a token by mouse and keyboard', async (t) => {
  const email = 'dora@example.com'
  const { page, context, secretShown } = await browse(t, links.base, {
    extraHTTPHeaders: identity(email),
    expectedErrors: [loadFailure(400)],
  })
  await rememberCopies(context)
  const works = async (token: string) => (await links.api(token)('GET', '/links')).status
  await page.goto(`${links.base}/-/`)
  await page.getByRole('navigation', { name: 'Main' }).getByText('Tokens').click()
  await page.getByText('You have no tokens yet.').waitFor()

  const token = await secretShown(async () => {
    await page.getByLabel('Name').fill('laptop "x" <b>')
    await page.getByRole('radio', { name: /^Read/ }).check()
    await page.getByLabel('Expires').selectOption('in a year')
    await page.getByRole('button', { name: 'Create token' }).press('Enter')
    await untilFocused(page, 'made')
    return keepSecret('page-token', await textOf(page.locator('#made-token')))
  })
  const card = page.getByRole('article', { name: 'laptop "x" <b>' })

  await t.test('it is shown with a button that copies it, and works', async (t) => {
    await clickCopy(
      page.getByRole('button', { name: 'Copy token' }),
      page.getByRole('button', { name: 'Copied token' }),
    )
    t.equal(await copiedOn(page), token)
    t.equal(await works(token), 200)
    t.match(await textOf(card), /Scope Read Expires .* Last used never/)
  })

  await t.test('once: a reload shows it no more', async (t) => {
    await page.goto(page.url())
    t.equal(await page.locator('#made').count(), 0)
    t.notOk((await page.content()).includes(token))
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
    await revoke.press('Enter')
    await page.getByText('You have no tokens yet.').waitFor()
    t.equal(await works(token), 401)
  })

  await t.test('what is refused is said beside the form, what was typed stays', async (t) => {
    const name = page.getByLabel('Name')
    await name.fill('   ')
    await page.getByRole('radio', { name: /^Create/ }).check()
    await name.press('Enter')
    await untilText(page.locator('#token-name-refused'), /^Name must have 1 to 100 characters/)
    t.ok(await page.getByRole('radio', { name: /^Create/ }).isChecked())
    await untilFocused(page, 'token-name')
    t.equal(await page.locator('#problem').textContent(), '')
  })
})
