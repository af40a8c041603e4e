import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { identity, linksServer, pageUser } from '../helpers/links.ts'
import { ended, opsServer, startGate } from '../helpers/ops.ts'
import type { Memory } from '../helpers/ops.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { browse, loadFailure, tabTo, textOf } from '../browser/pages.ts'

const [, postgres] = backends
const gate = await startGate(t)
const env = {
  ...(await postgres.env(t)),
  OPS_INVENTORY: gate.inventory,
  GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8',
}
/** One program for all tests of this file. */
const server = await startServer(t, { services: ['links', 'ops'], env })
const links = linksServer(server, env)
const ann = await pageUser(links, 'ann')
const bob = await pageUser(links, 'bob')

await t.test('links with the keyboard alone: made, shared, deleted', async (t: Test) => {
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

await t.test(
  'links without script: made, refused, shared, edited, found, deleted',
  async (t: Test) => {
    const { page } = await browse(t, links.base, {
      extraHTTPHeaders: identity(ann.email),
      javaScriptEnabled: false,
      expectedErrors: [400, 404, 409].map(loadFailure),
    })
    const whole = async (what: string): Promise<void> => {
      t.ok(
        await page.getByRole('navigation', { name: 'Main' }).isVisible(),
        `${what}: a whole page`,
      )
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
    for (const [label, remove] of [
      ['Share with', /^End/],
      ['Add a co-owner', /^Remove/],
    ] as const) {
      await page.getByLabel(label).fill(bob.email)
      await page.getByLabel(label).press('Enter')
      await page.getByRole('button', { name: remove }).waitFor()
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
  },
)

await t.test('the navigation has what one may open', async (t: Test) => {
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

await t.test(
  'ops without script: triggered, seen, stopped, remembered, configured',
  async (t: Test) => {
    const ops = opsServer(server, env)
    gate.open()
    await ended(ops)
    gate.shut()
    const { page } = await browse(t, ops.base, {
      javaScriptEnabled: false,
      expectedErrors: [400, 409].map(loadFailure),
    })
    const whole = async (what: string): Promise<void> => {
      t.ok(
        await page.getByRole('navigation', { name: 'Main' }).isVisible(),
        `${what}: a whole page`,
      )
      t.equal(await page.locator('h1').count(), 1, `${what}: with its heading`)
      t.equal(await page.locator('.js-only:visible').count(), 0, `${what}: nothing for script`)
    }
    await page.goto(`${ops.base}/`)
    await page.getByLabel('What to look into').fill('look')
    await page.getByRole('button', { name: 'Start session' }).click()
    await page.waitForURL(/\/sessions\/\d+$/)
    await whole('started')
    await until(async () => {
      await page.reload()
      return (await page.locator('.line').count()) > 0
    }, 'its first line')
    const here = page.url()
    await page.goto(`${ops.base}/`)
    await page.getByLabel('What to look into').fill('another')
    await page.getByRole('button', { name: 'Start session' }).click()
    t.match(await textOf(page.locator('#trigger-refused')), /A session is running/)
    await whole('refused')
    await page.goto(here)
    await page.getByRole('button', { name: /^Stop/ }).click()
    await until(async () => {
      await page.goto(here)
      return (await textOf(page.locator('#session-status'))) === 'stopped'
    }, 'the end')
    gate.open()
    await page.goto(`${ops.base}/memories`)
    await page.getByText('New memory…').click()
    await page.locator('#new-category').fill('timing')
    await page.locator('#new-observation').fill('slow')
    await page.getByRole('button', { name: 'Add memory' }).click()
    await whole('added')
    const { json } = await ops.api<{ memories: readonly Memory[] }>('GET', '/memories')
    const own = json.memories.find(({ tier }) => tier === 0)
    const card = page.locator(`#memory-${own?.id}`)
    await card.getByText('Edit…').click()
    await card.getByRole('button', { name: 'Delete' }).click()
    await whole('deleted')
    t.equal(await card.count(), 0)
    await page.goto(`${ops.base}/config`)
    await page.getByLabel(/^Interval/).fill('1200')
    await page.getByRole('button', { name: 'Save config' }).click()
    t.match(await textOf(page.locator('#settings .saved')), /^Saved/)
    await whole('saved')
  },
)
