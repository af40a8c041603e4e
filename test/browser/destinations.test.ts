import { t } from 'tap'
import type { Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { destination, untilListed } from '../helpers/destinations.ts'
import { addProvider, startHooks } from '../helpers/hooks.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secretKey, signingSecret } from '../helpers/senders.ts'
import { accessible, fits, measurable } from './measure.ts'
import { browse, send, untilText } from './pages.ts'

const FOLDER = process.env['SHOTS']

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
    for (const path of ['/destinations', '/destinations/erp', '/destinations/erp?state=dead']) {
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
    t.ok(await page.isChecked('#deliveries input[type=checkbox] >> nth=0'), 'a tick stays')
    status = 204
    await page.click('#retry-chosen')
    await untilText(page.locator('#done'), 'Retried 1 delivery.')
    await untilText(page.locator('#state'), /Delivered 1 .*Given up \(3\)/)
  })

  await t.test('a change is saved where it stands, and a removal goes to the list', async (t) => {
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
