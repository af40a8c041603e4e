import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { identity, pageUser, startPages } from '../helpers/links-pages.ts'
import { makeLink } from '../helpers/links-setup.ts'
import { browse, loadFailure, tabTo, textOf } from '../browser/pages.ts'

const LONG = 'x'.repeat(200)

function measure<T = readonly string[]>(page: Page, call: string): Promise<T> {
  return page.evaluate<T>(`inPage.${call}`)
}

await t.test('every page of links: widths, colours, names, keyboard', async (t: Test) => {
  const links = await startPages(t, backends[1])
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, `bob.${'b'.repeat(200)}`)
  const { id } = await makeLink(ann, `l${'-o'.repeat(31)}`, {
    url: `https://long.test/${'p'.repeat(2_000)}`,
    title: LONG,
    description: LONG.repeat(10),
    tags: Array.from({ length: 20 }, (_, at) => `${'t'.repeat(47)}-${at + 10}`),
    visibility: 'secure',
  })
  await ann.api('POST', `/links/${id}/owners`, { email: bob.email })
  await ann.api('POST', `/links/${id}/shares`, { email: bob.email })
  await ann.api('PUT', `/links/${id}`, { url: 'https://short.test/', title: LONG })
  await ann.get(`/l${'-o'.repeat(31)}`)
  const { id: plain } = await makeLink(ann, 'docs', { title: 'Docs', tags: ['wiki', 'team'] })
  const { page, context } = await browse(t, links.base, {
    extraHTTPHeaders: identity(ann.email),
    expectedErrors: [400, 403, 404].map(loadFailure),
  })
  await context.addInitScript({ path: join(import.meta.dirname, '..', 'browser', 'in-page.js') })
  const stranger = await makeLink(bob, 'secret', { visibility: 'secure' })
  const paths = [
    ...['/-/', '/-/all', '/-/?q=nothing-there', '/-/?visibility=none', '/-/new'],
    ...[id, plain].flatMap((link) => ['', '/edit', '/delete'].map((at) => `/-/links/${link}${at}`)),
    ...[`/-/links/${stranger.id}`, '/-/links/none', '/dosc', '/docs+', '/secret', '/-/nothing'],
  ]
  for (const [at, path] of paths.entries()) {
    await t.test(path.replace(/[0-9a-f-]{36}/, '…'), async (t) => {
      await page.emulateMedia({ colorScheme: at % 2 === 0 ? 'light' : 'dark' })
      await page.goto(links.base + path)
      t.same(await measure(page, 'structure()'), [])
      await measure(page, 'openDetails()')
      for (const width of [1280, 390, 320]) {
        await page.setViewportSize({ width, height: 800 })
        t.same(await measure(page, 'tooWide()'), [], `no sideways scroll at ${width} px`)
        t.same(await measure(page, 'smallTargets(40)'), [], `high enough at ${width} px`)
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          t.same(
            await measure(page, 'lowContrast(4.5)'),
            [],
            `contrast at ${width}, ${colorScheme}`,
          )
        }
      }
      await page.locator('main').focus()
      const faults: string[] = []
      for (let presses = 0; presses < 300; presses++) {
        const fault = await measure<string | null>(page, 'visit()')
        if (fault === null) break
        if (fault !== '' && presses > 0) faults.push(fault)
        await page.keyboard.press('Tab')
      }
      t.same(faults, [], 'the focus shows')
    })
  }
})

await t.test('with the keyboard alone: made, shared, deleted', async (t: Test) => {
  const links = await startPages(t, backends[1])
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const { page } = await browse(t, links.base, { extraHTTPHeaders: identity(ann.email) })
  await page.goto(`${links.base}/-/new`)
  await page.keyboard.type('keys')
  await tabTo(page, 'link-url')
  await page.keyboard.type('https://keys.test/')
  await tabTo(page, 'save-link')
  await page.keyboard.press('Enter')
  await page.locator('#short-link').waitFor()
  await tabTo(page, 'shares-email')
  await page.keyboard.type(bob.email)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'End the share with bob@example.com' }).waitFor()
  await page.getByRole('link', { name: 'Delete…' }).focus()
  await page.keyboard.press('Enter')
  await page.locator('#delete-link').waitFor()
  await tabTo(page, 'delete-link')
  await page.keyboard.press('Space')
  await page.waitForURL(`${links.base}/-/`)
  t.equal((await ann.get('/keys')).status, 404)
})

await t.test('without script: made, refused, shared, edited, found, deleted', async (t: Test) => {
  const links = await startPages(t, backends[1])
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const { page } = await browse(t, links.base, {
    extraHTTPHeaders: identity(ann.email),
    javaScriptEnabled: false,
    expectedErrors: [400, 404, 409].map(loadFailure),
  })
  const whole = async (what: string): Promise<void> => {
    t.ok(await page.locator('header nav').isVisible(), `${what}: a whole page`)
    t.equal(await page.locator('h1').count(), 1, `${what}: with its heading`)
  }
  await page.goto(`${links.base}/nothing-yet`)
  await page.getByRole('button', { name: 'Create “nothing-yet”' }).click()
  await page.getByLabel('Leads to').fill('nonsense')
  await page.getByRole('button', { name: 'Create link' }).click()
  await whole('refused')
  t.match(await textOf(page.locator('#link-url-refused')), /^Url must be an http:\/\//)
  t.equal(await page.getByLabel('Short name').inputValue(), 'nothing-yet')
  await page.getByLabel('Leads to').fill('https://nothing.test/')
  await page.getByRole('button', { name: 'Create link' }).click()
  await page.waitForURL(/\/-\/links\//)
  await whole('made')
  for (const [label, status] of [
    ['Share with', 'bob@example.com may read the link now.'],
    ['Add a co-owner', 'bob@example.com is a co-owner now.'],
  ] as const) {
    await page.getByLabel(label).fill(bob.email)
    await page.getByLabel(label).press('Enter')
    await page.waitForURL(/\/(shares|owners)$/)
    t.equal(await textOf(page.locator('#members > [role=status]')), status)
    await whole(label)
  }
  await page.getByLabel('Share with').fill(bob.email)
  await page.getByRole('button', { name: 'Share', exact: true }).click()
  t.match(await textOf(page.locator('#shares-refused')), /shared with this user already/)
  await page.getByRole('button', { name: /^End/ }).click()
  await page.getByRole('button', { name: /^Remove/ }).click()
  await whole('ended')
  await page.getByRole('link', { name: 'Edit' }).click()
  await page.getByLabel('Title').fill('Findable')
  await page.getByRole('button', { name: 'Save link' }).click()
  await page.goto(`${links.base}/-/`)
  await page.getByRole('searchbox').fill('findable')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.locator('td.type a').click()
  await page.getByRole('link', { name: 'Delete…' }).click()
  await page.getByRole('button', { name: 'Delete the link' }).click()
  await page.waitForURL(`${links.base}/-/`)
  await whole('deleted')
  t.equal((await ann.get('/nothing-yet')).status, 404)
})
