import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { identity, pageUser, startPages } from '../helpers/links-pages.ts'
import { makeLink } from '../helpers/links-setup.ts'
import { browse, loadFailure } from '../browser/pages.ts'

const LONG = 'x'.repeat(200)

function measure<T = readonly string[]>(page: Page, call: string): Promise<T> {
  return page.evaluate<T>(`inPage.${call}`)
}

await t.test('tags, tokens, admin, help, search: widths, colours, keyboard', async (t: Test) => {
  const links = await startPages(t, backends[1])
  const eve = await pageUser(links, `eve.${'e'.repeat(200)}`, { admin: true })
  const tag = 't'.repeat(50)
  await makeLink(eve, `l${'-o'.repeat(31)}`, {
    url: `https://long.test/${'p'.repeat(2_000)}`,
    title: LONG,
    tags: [tag, 'wiki'],
    visibility: 'secure',
  })
  await makeLink(eve, 'docs', { title: 'Docs', tags: ['wiki'] })
  await eve.post('/-/admin/users', { email: 'bob@example.com', name: 'n'.repeat(100) })
  await eve.api('POST', '/tokens', { name: 'n'.repeat(100), scope: 'read' })
  const { page, context } = await browse(t, links.base, {
    extraHTTPHeaders: identity(eve.email),
    expectedErrors: [400, 404].map(loadFailure),
  })
  await context.addInitScript({ path: join(import.meta.dirname, '..', 'browser', 'in-page.js') })
  const looksRight = async (t: Test): Promise<void> => {
    t.same(await measure(page, 'structure()'), [])
    await measure(page, 'openDetails()')
    for (const width of [1280, 390, 320]) {
      await page.setViewportSize({ width, height: 800 })
      t.same(await measure(page, 'tooWide()'), [], `no sideways scroll at ${width} px`)
      t.same(await measure(page, 'smallTargets(40)'), [], `high enough at ${width} px`)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        const low = await measure(page, 'lowContrast(4.5)')
        t.same(low, [], `contrast at ${width}, ${colorScheme}`)
      }
    }
  }
  const paths = [
    ...['/-/tags', '/-/tags/wiki', `/-/tags/${tag}`, '/-/tags/none', '/-/tokens'],
    ...['/-/admin/users', '/-/admin/users?limit=1', '/-/admin/users?limit=0'],
    ...['/-/admin/links', '/-/admin/links?q=none', '/-/help'],
    ...['/-/go?q=dosc', `/-/go?q=${LONG}`, `/-/go?q=l-o`],
  ]
  for (const [at, path] of paths.entries()) {
    await t.test(path.slice(0, 40), async (t) => {
      await page.emulateMedia({ colorScheme: at % 2 === 0 ? 'light' : 'dark' })
      await page.goto(links.base + path)
      await looksRight(t)
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

  await t.test('what a form was answered', async (t) => {
    await page.goto(`${links.base}/-/admin/users`)
    await page.locator('#user-email').fill('nonsense')
    await page.locator('#user-email').press('Enter')
    await page.locator('#user-refused').waitFor()
    await looksRight(t)
    await page.locator('#user-email').fill('cy@example.com')
    await page.locator('#user-email').press('Enter')
    await page.locator('#users > .saved').waitFor()
    await looksRight(t)
  })
})

await t.test('the navigation has what one may open', async (t: Test) => {
  const links = await startPages(t, backends[1])
  const ann = await pageUser(links, 'ann')
  const eve = await pageUser(links, 'eve', { admin: true })
  const own = ['My links', 'All links', 'New link', 'Tags', 'Tokens', 'Help']
  for (const [email, labels, line] of [
    [ann.email, own, 'Signed in as ann@example.com'],
    [eve.email, [...own, 'Admin'], 'Signed in as eve@example.com admin'],
    ['', [], 'Not signed in'],
  ] as const) {
    await t.test(line, async (t) => {
      const { page } = await browse(t, links.base, {
        extraHTTPHeaders: identity(email),
        expectedErrors: [403, 404].map(loadFailure),
        javaScriptEnabled: false,
      })
      await page.goto(`${links.base}/no-such-link`)
      const entries = page.getByRole('navigation', { name: 'Main' }).getByRole('link')
      t.same(await entries.allInnerTexts(), labels)
      const viewer = (await page.locator('.viewer').textContent()) ?? ''
      t.equal(viewer.replaceAll(/\s+/g, ' ').trim(), line)
      for (const label of labels) {
        await entries.filter({ hasText: label }).click()
        const current = page.locator('nav[aria-label=Main] [aria-current=page]')
        t.equal(await current.innerText(), label, 'it opens and is marked')
      }
    })
  }
})
