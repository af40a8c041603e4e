import { t } from 'tap'
import type { Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { destination, untilListed } from '../helpers/destinations.ts'
import { addProvider, startHooks } from '../helpers/hooks.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secretKey, signingSecret } from '../helpers/senders.ts'
import { until } from '../helpers/until.ts'
import { accessible, fits, measurable } from './measure.ts'
import { browse, send, textOf, untilText } from './pages.ts'

const FOLDER = process.env['SHOTS']
const IN_VIEW = `(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(
  document.getElementById('done').getBoundingClientRect())`

await onPostgres(t, 'the page of a destination', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend, {
    HOOKS_REPLAY_TARGETS: '127.0.0.1',
    GATEHOUSE_SECRET_KEY: secretKey(),
  })
  await addProvider(base, 'lan', { open: true })
  let status = 410
  const receiver = await startReceiver(t, (_, response) => void response.writeHead(status).end())
  await apiOf(base)('POST', '/destinations', {
    ...{ name: 'erp', url: `${receiver.url}/in`, providers: ['generic:lan'] },
    ...{ event_types: ['invoice.*', 'push'], rate: '50/s', headers: { 'X-Key': 'value-of-key' } },
    sign_with: { secret: signingSecret() },
  })
  for (const type of ['push', 'invoice.paid', 'invoice.failed']) {
    await send(base, 'generic/lan', '{}', { 'X-Event-Type': type })
  }
  await untilListed(env, 'erp', { dead: 3 })
  const { page, context } = await browse(t, base)
  await measurable(context)

  await t.test('it fits and can be read', async (t) => {
    for (const path of [
      '/',
      '/destinations',
      '/destinations/-/new',
      '/destinations/erp',
      '/destinations/erp?state=dead',
      '/settings',
    ]) {
      await page.goto(base + path)
      for (const summary of await page.locator('main details > summary').all())
        await summary.click()
      for (const width of [390, 1_280]) {
        await fits(t, page, width)
        for (const colorScheme of ['light', 'dark'] as const) {
          if (FOLDER === undefined) continue
          await page.emulateMedia({ colorScheme })
          const name = path.replaceAll(/\W+/g, '-')
          await page.screenshot({
            path: `${FOLDER}/${name}-${width}-${colorScheme}.png`,
            fullPage: true,
          })
        }
      }
      await accessible(t, page)
    }
  })

  await t.test('it is live, and the ticked ones are tried again', async (t) => {
    await page.goto(`${base}/destinations/erp?state=dead`)
    await page.click('#edit > summary')
    await page.click('#edit summary:has-text("How they are sent…")')
    await page.fill('#set-rate', '7')
    await page.check('#deliveries input[type=checkbox] >> nth=0')
    await send(base, 'generic/lan', '{}', { 'X-Event-Type': 'push' })
    await untilText(page.locator('#deliveries tbody'), /push.*invoice.paid.*invoice.failed.*push/)
    t.equal(await page.inputValue('#set-rate'), '7', 'what is typed stays')
    t.ok(await page.isChecked('#deliveries input[type=checkbox] >> nth=0'), 'so does a tick')
    for (const state of ['Disabled', 'Enabled']) {
      await destination(env, state === 'Enabled' ? 'enable' : 'disable', 'erp')
      await untilText(page.locator('#toggle-erp'), state)
    }
    await page.click('#toggle-erp')
    await untilText(page.locator('#toggle-erp'), 'Disabled')
    await page.click('#toggle-erp')
    await untilText(page.locator('#toggle-erp'), 'Enabled')
    t.equal(await page.inputValue('#set-rate'), '7', 'the switch leaves what is typed')
    t.ok(await page.isChecked('#deliveries input[type=checkbox] >> nth=0'), 'a tick stays')
    status = 204
    await page.click('#retry-chosen')
    await untilText(page.locator('#done'), 'Retried 1 delivery.')
    await untilText(page.locator('#state'), /Given up \(3\)/)
  })

  await t.test('a poll that was answered before the switch does not turn it back', async (t) => {
    await page.goto(`${base}/destinations/erp`)
    const switched = Promise.withResolvers<undefined>()
    let polls = 0
    let isAnswered = false
    await page.route(
      ({ pathname }) => pathname === '/destinations/erp',
      async (route) => {
        polls += 1
        // The second one is left open: until its answer the page shows what the first one did.
        if (polls > 1) return
        const response = await route.fetch()
        isAnswered = true
        await switched.promise
        // The page may have given it up.
        await route.fulfill({ response }).catch(() => undefined)
      },
    )
    await until(() => isAnswered, 'a poll')
    await page.click('#toggle-erp')
    await untilText(page.locator('#toggle-erp'), 'Disabled')
    switched.resolve(undefined)
    await until(() => polls > 1, 'the next poll')
    t.equal(await textOf(page.locator('#toggle-erp')), 'Disabled')
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await page.reload()
    await page.click('#toggle-erp')
    await untilText(page.locator('#toggle-erp'), 'Enabled')
  })

  await t.test('a change is saved where it stands, and a removal goes to the list', async (t) => {
    if (!(await page.isVisible('#set-button'))) await page.click('#edit > summary')
    if (!(await page.isVisible('#set-rate'))) {
      await page.click('#edit summary:has-text("How they are sent…")')
    }
    await page.fill('#set-rate', '9')
    await page.click('#set-button')
    await untilText(page.locator('#done'), 'Saved.')
    t.match(await page.inputValue('#set-rate'), '9')
    page.on('dialog', (dialog) => void dialog.accept())
    await page.click('summary:has-text("Remove…")')
    await page.click('button.danger')
    await untilText(page.locator('#done'), 'Removed erp.')
    t.equal(new URL(page.url()).pathname, '/destinations')
  })
})

await onPostgres(t, 'all pushes elsewhere', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend, { HOOKS_REPLAY_TARGETS: '127.0.0.1' })
  await addProvider(base, 'lan', { open: true })
  const receiver = await startReceiver(t)
  await send(base, 'generic/lan', '{}', { 'X-Event-Type': 'push' })
  await send(base, 'generic/lan', '{}', { 'X-Event-Type': 'invoice.paid' })
  const { page } = await browse(t, base)
  await page.goto(base)

  await t.test('in five actions, and the page says that it was added', async (t) => {
    let actions = 0
    const act = async (done: Promise<unknown>) => {
      await done
      actions += 1
    }
    await act(page.click('#navigation a:has-text("Destinations")'))
    await act(page.click('a:has-text("Add a destination")'))
    await act(page.fill('#add-url', `${receiver.url}/pushes`))
    await act(page.fill('#add-event_type', 'push'))
    await untilText(page.locator('#matches'), 'Matches 1 of the last 2 events.')
    await act(page.click('#add-button'))
    await untilText(page.locator('#done'), /^Added 127-0-0-1-\d+\.$/)
    t.equal(actions, 5)
    t.match(new URL(page.url()).pathname, /^\/destinations\/127-/)
    t.ok(await page.evaluate<boolean>(IN_VIEW), 'what was done is in sight')
    await send(base, 'generic/lan', '{}', { 'X-Event-Type': 'push' })
    await untilText(page.locator('#title'), / 1 delivered/)
  })

  await t.test('a test shows the answer, and keeps what is typed', async (t) => {
    await page.goto(`${base}/destinations/-/new`)
    await page.fill('#add-url', `${receiver.url}/tried`)
    await page.fill('#add-event_type', 'push')
    await page.click('#send-test')
    await untilText(page.locator('#test-result'), /^test ok Answered 204 in \d+ ms$/)
    t.equal(receiver.received.at(-1)?.path, '/tried')
    t.equal(await page.inputValue('#add-event_type'), 'push')
  })
})
