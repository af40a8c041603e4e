import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { identity, pageUser, startPages } from '../helpers/links-pages.ts'
import { makeLink } from '../helpers/links-setup.ts'
import type { Caller } from '../helpers/links-setup.ts'
import { until } from '../helpers/until.ts'
import { browse, loadFailure, tabTo, textOf, untilText } from './pages.ts'

async function roleOf({ api }: Caller): Promise<string> {
  return (await api<{ role: string }>('GET', '/users/me')).json.role
}

/** Answers the questions of a page with yes and notes them. */
function agree(page: Page): readonly string[] {
  const questions: string[] = []
  page.on('dialog', (dialog) => {
    questions.push(dialog.message())
    void dialog.accept()
  })
  return questions
}

await t.test('users by mouse and keyboard', async (t: Test) => {
  const links = await startPages(t, backends[0])
  const eve = await pageUser(links, 'eve', { admin: true })
  const ann = await pageUser(links, 'ann')
  const { page } = await browse(t, links.base, {
    extraHTTPHeaders: identity(eve.email),
    expectedErrors: [400, 403].map(loadFailure),
  })
  const questions = agree(page)
  const row = (email: string): ReturnType<Page['getByRole']> =>
    page.getByRole('row').filter({ hasText: email })
  await page.goto(`${links.base}/-/`)
  await page.getByRole('navigation', { name: 'Main' }).getByText('Admin').click()

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
    t.equal(await page.locator(`#user-${ann.id}`).count(), 1, 'the row in its place')
  })

  await t.test('and a user again, by keyboard', async (t) => {
    await row(ann.email).locator('summary').focus()
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await untilText(row(ann.email).getByRole('status'), 'Is a user now.')
    t.equal(await roleOf(ann), 'user')
  })

  await t.test('a user is added; what is refused stays in the form', async (t) => {
    await tabTo(page, 'user-email')
    await page.keyboard.type('Bob@Example.com')
    await page.getByLabel('Name').fill('<img src=x onerror=alert(1)>')
    await page.locator('#user-role').selectOption('admin')
    await tabTo(page, 'add-user-button')
    await page.keyboard.press('Enter')
    await untilText(page.locator('#users > .saved'), 'bob@example.com is an admin now.')
    t.match(await textOf(row('bob@example.com')), '<img src=x onerror=alert(1)>')
    t.equal(await page.locator('main img').count(), 0)
    t.equal(await page.getByLabel('E-mail').inputValue(), '')
    await page.getByLabel('E-mail').fill('bob@example.com')
    await page.getByLabel('E-mail').press('Enter')
    await untilText(page.locator('#user-refused'), /^There is a user with this e-mail address/)
    t.equal(await page.getByLabel('E-mail').inputValue(), 'bob@example.com')
  })

  await t.test("one's own role needs a tick and a yes, and leads away", async (t) => {
    await row(eve.email).getByText('Give up admin…').click()
    const button = page.getByRole('button', { name: 'Give up admin' })
    t.match(await textOf(row(eve.email)), /gatehouse user role eve@example\.com admin/)
    const asked = questions.length
    await button.click()
    t.equal(await page.locator('[name=acknowledge_own]:invalid').count(), 1, 'the browser asks')
    t.equal(questions.length, asked)
    t.equal(await roleOf(eve), 'admin')
    await page.getByRole('checkbox', { name: 'I give up my own admin role' }).check()
    await button.click()
    await page.waitForURL(`${links.base}/-/`)
    t.match(questions.at(-1), /your own admin role/)
    t.equal(await roleOf(eve), 'user')
    t.equal(await page.getByRole('navigation', { name: 'Main' }).getByText('Admin').count(), 0)
    t.notMatch(await textOf(page.locator('.viewer')), 'admin')
    await page.goto(`${links.base}/-/admin/users`)
    t.match(await textOf(page.locator('main')), /Only admins may do this/)
  })
})

await t.test('users without script', async (t: Test) => {
  const links = await startPages(t, backends[1])
  const eve = await pageUser(links, 'eve', { admin: true })
  const ann = await pageUser(links, 'ann')
  const { page } = await browse(t, links.base, {
    extraHTTPHeaders: identity(eve.email),
    javaScriptEnabled: false,
    expectedErrors: [loadFailure(400)],
  })
  const row = page.locator(`#user-${ann.id}`)
  await page.goto(`${links.base}/-/admin/users?limit=1`)
  await row.getByText('Make admin…').click()
  await row.getByRole('button', { name: `Make ${ann.email} an admin` }).click()
  await row.getByText('Is an admin now.').waitFor()
  t.ok(await page.getByRole('navigation', { name: 'Main' }).isVisible(), 'on the whole page')
  t.equal(await page.locator('tbody tr').count(), 1, 'of the list as it was')
  t.equal(await roleOf(ann), 'admin')
  await page.getByRole('link', { name: 'Show more' }).click()
  const own = page.locator(`#user-${eve.id}`)
  await own.getByText('Give up admin…').click()
  await own.getByRole('checkbox').check()
  await own.getByRole('button', { name: 'Give up admin' }).click()
  await page.waitForURL(`${links.base}/-/`)
  t.equal(await roleOf(eve), 'user')
})

await t.test('links of everybody', async (t: Test) => {
  const links = await startPages(t, backends[1])
  const eve = await pageUser(links, 'eve', { admin: true })
  const ann = await pageUser(links, 'ann')
  for (let at = 10; at < 70; at++) await makeLink(ann, `n-${at}`, { visibility: 'private' })
  await makeLink(ann, 'other', { visibility: 'secure' })
  const { page } = await browse(t, links.base, { extraHTTPHeaders: identity(eve.email) })
  const rows = page.locator('#all-links > tr')
  await page.goto(`${links.base}/-/admin/links`)
  t.equal(await rows.count(), 50)

  await t.test('more of them by keyboard; the focus stays', async (t) => {
    await page.getByRole('link', { name: 'Show more' }).focus()
    await page.keyboard.press('Enter')
    await until(async () => (await rows.count()) === 61, 'all rows')
    await until(
      async () => (await textOf(page.locator(':focus'))) === 'That is all.',
      'the focus where it was',
    )
    t.equal(new Set(await rows.locator('td.type').allTextContents()).size, 61, 'none twice')
  })

  await t.test('search as one types', async (t) => {
    await page.getByLabel('Slug begins with').pressSequentially('oth')
    await until(async () => (await rows.count()) === 1, 'one row')
    t.match(await textOf(rows), /other .*secure.* ann@example\.com/)
    t.match(page.url(), /\?q=oth$/)
  })

  await t.test("a link of another's is deleted", async (t) => {
    await page.getByRole('link', { name: 'Delete other' }).click()
    await page.locator('#delete-link').click()
    await page.waitForURL(`${links.base}/-/`)
    t.equal((await ann.get('/other')).status, 404)
  })
})
