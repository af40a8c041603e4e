import { t, type Test } from 'tap'
import type { Page } from 'playwright-core'
import { postgres } from '../helpers/backends.ts'
import { identity, linksServer, makeLink } from '../helpers/links.ts'
import { startServer } from '../helpers/server.ts'
import { SIGNED_ENV, addProvider, deliver, type Ack } from '../helpers/hooks.ts'
import { browse, clickButton, headerText, loadFailure, send, textOf } from './pages.ts'

const env = {
  ...SIGNED_ENV,
  ...(await postgres.env(t)),
  GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8',
}
const server = await startServer(t, { services: ['hooks', 'links'], env })

const SCRIPT = '<script>alert(1)</script>'
const IMAGE = '"><img src=x onerror=alert(1)>'
const MOUSE = "' onmouseover='alert(1)' autofocus onfocus='alert(1)"
const TEMPLATE = '{{7*7}}${7*7} <%= 7 %>'
/** Turns the reading direction around and never turns it back. */
const OVERRIDE = '\u202Egpj.exe'

/**
 * Elements and attributes that only hostile text could have made. Of images pages have QR codes
 * alone.
 */
const MADE = `main :is(script, iframe, img:not(.qr), [onerror], [onmouseover], [onfocus], [onload],
  [xlink\\:href], q[hx-get])`

/** A page on which a dialog, a failed load of `x` and a broken policy each fail the test. */
async function openPage(t: Test, base: string, options: Parameters<typeof browse>[2] = {}) {
  const { page } = await browse(t, base, options)
  page.on('dialog', (dialog) => {
    t.fail(`a dialog opened: ${dialog.message()}`)
    void dialog.dismiss()
  })
  return page
}

/** Nothing was made of the text, and the page does not scroll sideways. */
async function inert(t: Test, page: Page, where: string) {
  t.equal(await page.locator(MADE).count(), 0, `nothing was made of it ${where}`)
  t.ok(await page.evaluate(STAYS_INSIDE), `no sideways scroll ${where}`)
}

const STAYS_INSIDE = 'document.scrollingElement.scrollWidth <= innerWidth'

await t.test('hooks: what a sender chose is text and nothing else', async (t) => {
  const base = server.hooks
  await addProvider(base, 'shop', { open: true })
  // Wider screens show an event beside the log.
  const page = await openPage(t, base, { viewport: { width: 1024, height: 768 } })

  // Each kind by itself or two that can't hide one another, up to the longest type.
  const types = [SCRIPT + TEMPLATE, IMAGE, MOUSE, OVERRIDE]
  const events: Ack[] = []
  for (const type of types) {
    const body = JSON.stringify({ id: `evt-${events.length}`, type, [type]: [type] })
    events.push((await deliver(base, 'payments', body)).json<Ack>())
  }
  const linkOf = (at: number) => page.locator(`tr[data-id="${events[at]?.id}"] .type a`)

  await t.test('event types on the dashboard', async (t) => {
    await page.goto(`${base}/`)
    await inert(t, page, 'on the dashboard')
    for (const [at, type] of types.entries()) t.equal(await linkOf(at).textContent(), type)
  })

  for (const [at, type] of types.entries()) {
    await t.test(`event type ${type.slice(0, 40)}`, async (t) => {
      await page.goto(`${base}/log?event_type=${encodeURIComponent(type)}`)
      await inert(t, page, 'on the log')
      t.equal(await linkOf(at).textContent(), type)
      t.match(await page.getByRole('combobox', { name: 'Filters' }).inputValue(), type)
      const newest = await page.locator('#log-results').getAttribute('data-newest')
      t.equal(new URL(newest ?? '', base).searchParams.get('event_type'), type)
      await linkOf(at).click()
      await page.waitForURL(`${base}/log/${events[at]?.id}`)
      await inert(t, page, 'on its page')
      t.equal(await textOf(page.locator('h1')), `${type} verified`)
      t.match(await page.locator('.json').textContent(), JSON.stringify(type))
      if (type !== OVERRIDE) return
      const boxes = await page
        .locator('h1 .badge')
        .evaluate((badge: Boxed & { parentElement: Boxed }) => [
          badge.getBoundingClientRect().left,
          badge.parentElement.getBoundingClientRect().left,
        ])
      t.ok(Number(boxes[0]) > Number(boxes[1]) + 20, 'the badge stands right of the type')
    })
  }

  await t.test('rows of the live stream', async (t) => {
    await page.goto(`${base}/`)
    for (const type of [SCRIPT, IMAGE]) {
      const { id } = await send(base, 'generic/shop', type, { 'X-Event-Type': type })
      const link = page.locator(`tr[data-id="${id}"] .type a`)
      await link.waitFor()
      t.equal(await link.textContent(), type)
    }
    await inert(t, page, 'in live rows')
  })

  await t.test('headers and payload', async (t) => {
    const body = `</code></pre></script>${SCRIPT}${IMAGE}${OVERRIDE}<!--`
    const headers = { 'X-One': SCRIPT, 'X-Two': IMAGE, 'X-Three': headerText(OVERRIDE) }
    const long = { 'X-Long': 'y'.repeat(6_000), 'X-Event-Type': headerText(OVERRIDE) }
    const { id } = await send(base, 'generic/shop', body, { ...headers, ...long })
    await page.goto(`${base}/log/${id}`)
    await inert(t, page, 'on its page')
    t.equal(await page.locator('pre.payload code').textContent(), body)
    await page.goto(`${base}/log/${id}?tab=request`)
    await inert(t, page, 'as a request')
    const value = (name: string) =>
      page.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }) })
    t.equal(await value('X-One').getByRole('cell').textContent(), SCRIPT)
    t.equal(await value('X-Two').getByRole('cell').textContent(), IMAGE)
    await page.goto(`${base}/log/${id}?tab=curl`)
    await inert(t, page, 'as a command')
    t.match(await page.locator('#curl-command').textContent(), `-H 'x-one: ${SCRIPT}'`)
  })
})

type Boxed = { getBoundingClientRect(): { left: number } }

const SVG = '<svg onload=alert(1)><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>'
const ENDS = '</title></textarea></select></script><iframe srcdoc="<script>alert(1)</script>">'
const HTMX = '<q hx-get="/-/new" hx-trigger="load" hx-on:load="alert(1)">'
/** In groups, as long as a title may be. */
const TEXTS = [SCRIPT + MOUSE + IMAGE + HTMX, `\u200F${ENDS + SVG}`] as const
/** What no link may lead to. */
const TARGETS = [
  'JaVaScRiPt://good.test/%0aalert(1)',
  'java\tscript:alert(1)',
  'data:text/html,<script>alert(1)</script>',
  'https://evil.test/?\u202Egpj.exe',
] as const

await t.test('links: what somebody typed is text and nothing else', async (t) => {
  const links = linksServer(server, env)
  const ann = await links.user('ann')
  const sly = await links.user('sly<b>"x"</b>'.replaceAll(/[<>"]/g, "'"))
  const page = await openPage(t, links.base, {
    viewport: { width: 390, height: 800 },
    extraHTTPHeaders: identity(ann.email),
    expectedErrors: [400, 403, 404].map(loadFailure),
  })

  for (const [at, text] of TEXTS.entries()) {
    await t.test(text.slice(0, 40), async (t) => {
      const url = `https://evil.test/?${text.replaceAll(/[\s\u200f]/g, '+')}`
      const fields = { title: text, description: text, url, tags: ['x'] }
      const link = await makeLink(ann, `evil-${at}`, fields)
      await ann.api('POST', `/links/${link.id}/owners`, { email: sly.email })
      await ann.api('PUT', `/links/${link.id}`, { ...fields, title: `${text}!`.slice(0, 200) })
      const title = page.locator('bdi', { hasText: text })
      const visit = async (path: string, where: string) => {
        await page.goto(links.base + path)
        await inert(t, page, where)
      }

      await visit(`/-/?q=evil-${at}`, 'in the list')
      // A list shows the beginning of an address.
      const shown = (await page.locator('tr .target bdi').textContent()) ?? ''
      t.ok(url.includes(shown.replace(/…$/, '')) && shown.length >= 30, shown)
      await visit(`/-/?q=${encodeURIComponent(text)}`, 'in the search')
      t.equal(await page.getByRole('searchbox').inputValue(), text.trim())
      await visit(`/-/links/${link.id}`, 'on its page')
      await page.getByText('Clicks in 30 days').hover()
      await inert(t, page, 'under the mouse')
      t.ok((await title.count()) >= 2, 'it is shown, in the history too')
      await visit(`/-/links/${link.id}/edit`, 'in its form')
      t.equal(await page.getByLabel('Description').inputValue(), text)
      await visit(`/-/links/${link.id}/delete`, 'before it is deleted')
      await page.goto(`${links.base}/-/links/${link.id}`)
      await page.getByRole('link', { name: 'Restore this version' }).last().click()
      await page.waitForURL(/\/history\/\d+$/)
      await inert(t, page, 'in a version')
      await visit(`/evil-${at}+`, 'in the preview')
      await visit(`/evil-${at}x`, 'among what was meant')
      await visit(`/${encodeURIComponent(text.slice(0, 60))}`, 'where no link is')
      const query = new URLSearchParams({ slug: text, url: text, title: text })
      await visit(`/-/new?${query}`, 'in the form of a new link')
      t.equal(await page.locator('#link-title').inputValue(), text)
    })
  }

  await t.test('addresses that do something else than lead away', async (t) => {
    const field = page.getByLabel('Leads to')
    for (const url of TARGETS) {
      await page.goto(`${links.base}/-/new?slug=bad-target`)
      await field.fill(url)
      const answer = page.waitForResponse((response) => response.request().method() === 'POST')
      await clickButton(page, 'Create link')
      t.equal((await answer).status(), 400, url)
      await page.locator('#link-url-refused').waitFor()
      t.equal(await field.inputValue(), url)
    }
    t.equal((await ann.get('/bad-target')).status, 404)
    await page.goto(`${links.base}/-/`)
    const hrefs: string[] = await page
      .locator('main a[href]')
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
    await field.fill(IMAGE)
    await field.press('Enter')
    await page.locator('#owners-email-refused').waitFor()
    t.equal(await field.inputValue(), IMAGE)
    await inert(t, page, 'in the refused form')
  })
})
