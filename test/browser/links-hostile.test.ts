import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { identity, pageUser, startPages } from '../helpers/links-pages.ts'
import { makeLink } from '../helpers/links-setup.ts'
import { browse, loadFailure } from './pages.ts'

const SCRIPT = '<script>alert(1)</script>'
const TEXTS = [
  SCRIPT,
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)' autofocus onfocus='alert(1)",
  '<svg onload=alert(1)><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>',
  '</title></textarea></select></script><iframe srcdoc="<script>alert(1)</script>">',
  '\u200Fgpj.exe',
  '{{7*7}}${7*7} <%= 7 %>',
  '<q hx-get="/-/new" hx-trigger="load" hx-on:load="alert(1)">',
  'W'.repeat(200),
] as const
/** What no link may lead to. */
const TARGETS = [
  'javascript:alert(1)',
  'JaVaScRiPt://good.test/%0aalert(1)',
  'java\tscript:alert(1)',
  'data:text/html,<script>alert(1)</script>',
  'vbscript:x',
  '//evil.test/',
  'https://user:pass@evil.test/',
  'https://evil.test/?\u202Egpj.exe',
] as const

/** Elements that only hostile text could have made. */
const MADE =
  'main script, main iframe, main img, main [onerror], main [onmouseover], main [onload], main [xlink\\:href], main q[hx-get]'

await t.test('what somebody typed is text and nothing else', async (t: Test) => {
  const links = await startPages(t, backends[1])
  const ann = await pageUser(links, 'ann')
  const sly = await pageUser(links, 'sly<b>"x"</b>'.replaceAll(/[<>"]/g, "'"))
  const { page } = await browse(t, links.base, {
    extraHTTPHeaders: identity(ann.email),
    expectedErrors: [400, 403, 404].map(loadFailure),
  })
  page.on('dialog', (dialog) => {
    t.fail(`a dialog opened: ${dialog.message()}`)
    void dialog.dismiss()
  })
  const inert = async (t: Test, where: string): Promise<void> => {
    t.equal(await page.locator(MADE).count(), 0, `nothing was made of it ${where}`)
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 })
      t.ok(await staysInside(page), `no sideways scroll ${where} at ${width} px`)
    }
  }

  for (const [at, text] of TEXTS.entries()) {
    await t.test(text.slice(0, 40), async (t) => {
      const url = `https://evil.test/?${text.replaceAll(/[\s\u200f]/g, '+')}`
      const fields = { title: text, description: text, url, tags: ['x'] }
      const link = await makeLink(ann, `evil-${at}`, fields)
      await ann.api('POST', `/links/${link.id}/owners`, { email: sly.email })
      await ann.api('PUT', `/links/${link.id}`, { ...fields, title: `${text}!`.slice(0, 200) })
      const title = page.locator('bdi', { hasText: text })

      await page.goto(`${links.base}/-/?q=evil-${at}`)
      await inert(t, 'in the list')
      t.equal(await page.locator('tr .target bdi').textContent(), url)
      await page.goto(`${links.base}/-/?q=${encodeURIComponent(text)}`)
      t.equal(await page.getByRole('searchbox').inputValue(), text.trim())
      await inert(t, 'in the search')
      await page.goto(`${links.base}/-/links/${link.id}`)
      await page.getByText('Clicks in 30 days').hover()
      await inert(t, 'on its page')
      t.ok((await title.count()) >= 2, 'it is shown, in the history too')
      await page.goto(`${links.base}/-/links/${link.id}/edit`)
      await inert(t, 'in its form')
      t.equal(await page.getByLabel('Description').inputValue(), text)
      await page.goto(`${links.base}/-/links/${link.id}/delete`)
      await inert(t, 'before it is deleted')
      await page.goto(`${links.base}/evil-${at}+`)
      await inert(t, 'in the preview')
      await page.goto(`${links.base}/evil-${at}x`)
      await inert(t, 'among what was meant')
      await page.goto(`${links.base}/${encodeURIComponent(text.slice(0, 60))}`)
      await inert(t, 'where no link is')
      const query = new URLSearchParams({ slug: text, url: text, title: text })
      await page.goto(`${links.base}/-/new?${query}`)
      await inert(t, 'in the form of a new link')
      t.equal(await page.locator('#link-title').inputValue(), text)
    })
  }

  await t.test('addresses that do something else than lead away', async (t) => {
    for (const url of TARGETS) {
      await page.goto(`${links.base}/-/new?slug=bad-target`)
      await page.getByLabel('Leads to').fill(url)
      await page.getByRole('button', { name: 'Create link' }).click()
      await page.locator('#link-url-refused').waitFor()
      t.equal(await page.getByLabel('Leads to').inputValue(), url)
    }
    t.equal((await ann.get('/bad-target')).status, 404)
    await page.goto(`${links.base}/-/`)
    const hrefs: string[] = await page
      .locator('a[href]')
      .evaluateAll((all: readonly { href: string }[]) => all.map(({ href }) => href))
    t.same(
      hrefs.filter((href) => !href.startsWith(links.base)),
      [],
      'no list leads anywhere but here',
    )
  })

  await t.test('an e-mail address that is none', async (t) => {
    const link = await makeLink(ann, 'plain')
    await page.goto(`${links.base}/-/links/${link.id}`)
    const field = page.getByLabel('Add a co-owner')
    await field.evaluate((input: { type: string }) => (input.type = 'text'))
    await field.fill(TEXTS[1])
    await field.press('Enter')
    await page.locator('#owners-refused').waitFor()
    t.equal(await field.inputValue(), TEXTS[1])
    await inert(t, 'in the refused form')
  })
})

async function staysInside(page: Page): Promise<boolean> {
  return page.evaluate<boolean>('document.scrollingElement.scrollWidth <= innerWidth')
}
