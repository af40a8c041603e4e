import { t, type Test } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { SIGNED_ENV, addProvider, deliver, eventIds, postForm } from '../helpers/hooks.ts'
import { identity, linksServer } from '../helpers/links.ts'
import { ended, opsServer, startGate, type Memory } from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { browse, clickButton, loadFailure, rowIds, send, tabTo, textOf } from './pages.ts'

// Every task works without script: each answer is a whole page.

const gate = await startGate(t)
gate.open()
const env = {
  ...SIGNED_ENV,
  ...(await postgres.env(t)),
  OPS_INVENTORY: gate.inventory,
  GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8',
}
const server = await startServer(t, { env })
const base = server.hooks
const links = linksServer(server, env)
const ann = await links.user('ann')
const bob = await links.user('bob')
const { page, secretShown } = await browse(t, base, {
  origins: [server.hooks, server.links, server.ops],
  javaScriptEnabled: false,
  expectedErrors: [400, 403, 404, 409, 422].map(loadFailure),
})
await page.setExtraHTTPHeaders(identity(ann.email))
const main = page.locator('main')

/** Does something that loads a page; gives its status and makes sure that it is a whole page. */
async function loads(t: Test, act: () => Promise<unknown>) {
  // A form's answer may lead to a page, which is what counts.
  const answer = page.waitForEvent(
    'response',
    (response) => response.request().isNavigationRequest() && response.status() !== 303,
  )
  const [response] = await Promise.all([answer, page.waitForEvent('load'), act()])
  t.ok(await page.getByRole('navigation', { name: 'Main' }).isVisible(), 'with the navigation')
  t.equal(await page.locator('h1').count(), 1, 'with its one heading')
  t.equal(await page.locator('footer').count(), 1, 'to its end')
  t.equal(await page.locator('.js-only:visible').count(), 0, 'with nothing for script')
  return response.status()
}

/** Presses a button. */
const press = (t: Test, name: string | RegExp) =>
  loads(t, () => page.getByRole('button', { name }).click())
/** Follows a link. */
const follow = (t: Test, name: string) =>
  loads(t, () => page.getByRole('link', { name, exact: true }).click())

await t.test('hooks', async (t) => {
  await addProvider(base, 'shop', { open: true })
  for (let count = 0; count < 7; count++) await send(base, 'generic/shop', `{"n":${count}}`)
  await deliver(base, 'code_host', '{"a":1}')
  const all = await eventIds(base)
  const shop = all.slice(1)

  await t.test('the log: filtered, older entries, an event, what is refused', async (t) => {
    t.equal(await loads(t, () => page.goto(base)), 200)
    t.same(await rowIds(page), all)
    await follow(t, 'Log')
    await page.getByLabel('Provider').selectOption('generic:shop')
    await press(t, 'Filter')
    t.same(await rowIds(page), shop)
    await loads(t, () => page.goto(`${base}/log?provider=generic%3Ashop&limit=4`))
    await follow(t, 'Load older entries')
    t.same(await rowIds(page), shop.slice(4))
    t.equal(await page.getByLabel('Provider').inputValue(), 'generic:shop')
    await loads(t, () => page.locator('#log-rows a').last().click())
    await page.getByText('As sent').click()
    t.equal(await page.locator('#raw-payload pre').textContent(), '{"n":0}')
    await page.goto(`${base}/log`)
    await page.getByRole('combobox', { name: 'Filters' }).fill('since:yesterday')
    t.equal(await loads(t, () => page.keyboard.press('Enter')), 400)
    t.match(await textOf(main), /Since must be an event id or a time/)
  })

  await t.test('a provider: switched, made, rotated, removed', async (t) => {
    await follow(t, 'Providers')
    const toggle = page.getByRole('switch', { name: /^generic:shop/ })
    t.equal(await loads(t, () => toggle.click()), 200)
    t.equal(await toggle.getAttribute('aria-checked'), 'false')
    await tabTo(page, 'toggle-generic%3Ashop')
    t.equal(await loads(t, () => page.keyboard.press('Space')), 200)
    await send(base, 'generic/shop')

    await follow(t, 'New provider')
    await follow(t, 'Any sender, with a token')
    const made = page.locator('#made-token')
    await page.getByLabel('Name').fill('ci')
    t.equal(await secretShown(() => press(t, 'Add provider')), 200)
    const token = keepSecret('page-token', await textOf(made))
    await send(base, 'generic/ci', '{}', { Authorization: `Bearer ${token}` })
    await follow(t, 'Look again')
    t.match(await textOf(main), /It has arrived/)

    const card = page.locator('[data-provider="generic:ci"]')
    await page.goto(`${base}/providers?open=generic:ci`)
    t.equal(await made.count(), 0)
    await card.getByText('Rotate…').click()
    t.equal(await secretShown(() => press(t, 'Rotate secret')), 200)
    keepSecret('rotated-token', await textOf(made))
    // The browser posts the form again, with what the page showed before the rotation.
    t.equal(await loads(t, () => page.reload()), 409)
    await page.goto(`${base}/providers?open=generic:ci`)
    await card.getByText('Remove…').click()
    t.equal(await press(t, 'Remove generic:ci'), 200)
    t.equal(await card.count(), 0)
  })

  await t.test('an event is sent on; a bad target is refused, also for many', async (t) => {
    const receiver = await startReceiver(t)
    const { id } = await send(base, 'generic/shop')
    const replay = async (target: string) => {
      await page.locator('#replay-menu > summary').click()
      await page.locator('#target_url').fill(target)
      await loads(t, () => page.locator('#replay-button').click())
      return textOf(main)
    }
    await postForm(base, '/settings', { replay_default_target: `${receiver.url}/` })
    await page.goto(`${base}/log/${id}`)
    t.match(await replay(''), /Delivered: 204/)
    await replay('ftp://files.test/')
    t.match(await textOf(page.locator('#target_url-refused')), /must be an http/)
    await page.goto(`${base}/log`)
    await follow(t, 'Replay…')
    await page.locator('#job-target-target_url').fill('http://10.0.0.1/')
    await loads(t, () => page.locator('#start-replay').click())
    t.match(
      await textOf(page.locator('#job-target-target_url-refused')),
      /not on the public internet/,
    )
  })

  await t.test('a search: saved and used', async (t) => {
    await page.goto(`${base}/log?provider=code_host`)
    await page.locator('#saved-searches > summary').click()
    await page.getByLabel('Save these filters as').fill('Code')
    await press(t, 'Save')
    t.equal(await textOf(page.locator('#done')), 'Saved Code.')
    await page.goto(`${base}/log`)
    await page.locator('#saved-searches > summary').click()
    await follow(t, 'Code')
    t.same(await rowIds(page), all.slice(0, 1))
  })

  await t.test('the palette is a page of links', async (t) => {
    await page.goto(base)
    await follow(t, 'Search')
    await page.getByLabel('Search for').fill('destination')
    await press(t, 'Search')
    await loads(t, () => main.getByRole('link', { name: 'Add a destination' }).click())
    t.equal(new URL(page.url()).pathname, '/destinations/-/new')
  })
})

await t.test('a link: made, refused, shared, edited, found, deleted', async (t) => {
  await page.goto(`${links.base}/nothing-yet`)
  await press(t, 'Create “nothing-yet”')
  await page.getByLabel('Leads to').fill('nonsense')
  t.equal(await press(t, 'Create link'), 400)
  t.match(await textOf(page.locator('#link-url-refused')), /^Leads to must be an http:\/\//)
  await page.getByLabel('Leads to').fill('https://nothing.test/')
  await press(t, 'Create link')
  await page.getByLabel('Share with').fill(bob.email)
  await press(t, /^Share$/)
  await press(t, /^End/)
  await page.getByLabel('Add a co-owner').fill(bob.email)
  await loads(t, () => page.getByLabel('Add a co-owner').press('Enter'))
  await press(t, /^Remove/)
  await follow(t, 'Edit')
  await page.getByLabel('Title').fill('Findable')
  await press(t, 'Save link')
  await page.goto(`${links.base}/-/`)
  await page.getByRole('searchbox').fill('findable')
  await press(t, 'Search')
  await page.locator('td.type a').click()
  await follow(t, 'Delete…')
  await press(t, 'Delete the link')
  t.equal((await ann.get('/nothing-yet')).status, 404)
})

await t.test('a token: made, revoked', async (t) => {
  const name = page.getByLabel('Name')
  await page.goto(`${links.base}/-/tokens`)
  await name.fill('plain')
  await secretShown(async () => {
    await loads(t, () => name.press('Enter'))
    keepSecret('page-token', await textOf(page.locator('#made-token')))
  })
  await page.goto(`${links.base}/-/tokens`)
  const card = page.getByRole('article', { name: 'plain' })
  await card.getByText('Revoke…').click()
  await press(t, 'Revoke plain')
  t.equal(await card.count(), 0)
})

await t.test('the navigation has what one may open', async (t) => {
  const eve = await links.user('eve', { admin: true })
  const own = ['My links', 'All links', 'New link', 'Tags', 'Tokens', 'Help']
  const entries = page.getByRole('navigation', { name: 'Main' }).getByRole('link')
  for (const [email, labels, line] of [
    ['', [], 'Not signed in'],
    [ann.email, own, 'Signed in as ann@example.com'],
    [eve.email, [...own, 'Admin'], 'Signed in as eve@example.com admin'],
  ] as const) {
    await page.setExtraHTTPHeaders(identity(email))
    await page.goto(`${links.base}/no-such-link`)
    t.same(await entries.allInnerTexts(), labels)
    t.equal(await textOf(page.locator('.viewer')), line)
    for (const label of labels) {
      await entries.filter({ hasText: label }).click()
      const current = page.locator('nav[aria-label=Main] [aria-current=page]')
      t.equal(await current.innerText(), label, 'it opens and is marked')
    }
  }
})

await t.test('a session, a memory and the configuration', async (t) => {
  const ops = opsServer(server, env)
  await ended(ops)
  gate.shut()
  await page.goto(ops.base)
  t.equal(await textOf(page.locator('#spend .title-line')), 'Spent UTC')
  await page.getByLabel('What to look into').fill('look')
  await press(t, 'Start session')
  await until(async () => {
    await page.reload()
    return (await page.locator('.line').count()) > 0
  }, 'its first line')
  const here = page.url()
  await clickButton(page, /^Stop/)
  await until(async () => {
    await page.goto(here)
    return (await textOf(page.locator('#session-status'))) === 'stopped'
  }, 'the end')
  gate.open()
  await page.goto(`${ops.base}/memories`)
  await page.getByText('New memory…').click()
  await page.locator('#new-category').fill('timing')
  await page.locator('#new-observation').fill('slow')
  await press(t, 'Add memory')
  const { json } = await ops.api<{ memories: readonly Memory[] }>('GET', '/memories')
  const card = page.locator(`#memory-${json.memories.find(({ tier }) => tier === 0)?.id}`)
  await card.getByText('Edit…').click()
  await loads(t, () => card.getByRole('button', { name: 'Delete' }).click())
  t.equal(await card.count(), 0)
  await page.goto(`${ops.base}/config`)
  await page.getByLabel(/^Interval/).fill('1200')
  await press(t, 'Save config')
  t.match(await textOf(page.locator('#done')), /^Saved/)
})
