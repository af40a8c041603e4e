import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends, onPostgres } from '../helpers/backends.ts'
import { startServer } from '../helpers/server.ts'
import { addProvider, deliver, postForm, startHooksProcess } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'
import { browse, loadFailure, rowIds, send, textOf, untilText } from './pages.ts'

/** What Chromium writes when the stream breaks and while nobody listens. */
const CONNECTION_LOST = /net::ERR_(CONNECTION|INCOMPLETE|EMPTY|INTERNET|NETWORK|SOCKET)/

function connection(page: Page): Promise<string> {
  return textOf(page.locator('[data-connection-label]'))
}

function tile(page: Page, name: string, part: string): ReturnType<Page['locator']> {
  return page.locator(`[data-provider="${name}"]`).locator(part)
}

await onPostgres(t, 'the dashboard follows events without reload', async (t: Test, backend) => {
  const { base } = await startHooksProcess(t, backend)
  await addProvider(base, 'shop', { open: true })
  const { page } = await browse(t, base)
  await page.goto(`${base}/`)
  t.equal(await connection(page), 'idle')
  t.ok(await page.locator('#first-webhook').isVisible(), 'an empty dashboard says what to do')
  t.notOk(await page.locator('#recent').isVisible())
  t.equal(await textOf(tile(page, 'generic:shop', '[data-last-event]')), 'never')
  // A mark that a reload would wipe away.
  await page.locator('main').evaluate((main: { dataset: { mark?: string } }) => {
    main.dataset.mark = 'kept'
  })

  const ack = await send(base, 'generic/shop', '{"total": 1}', { 'X-Event-Type': 'order.paid' })
  const row = page.locator(`#recent-rows > tr[data-id="${ack.id}"]`)
  await row.waitFor()
  t.equal(await textOf(row.locator('[data-field="provider"]')), 'generic:shop')
  t.equal(await textOf(row.locator('[data-field="event_type"]')), 'order.paid')
  t.equal(await textOf(row.locator('.verify')), 'unchecked')
  t.equal(await textOf(row.locator('[data-field="payload_size"]')), '12 B')
  t.equal(await row.locator('time').getAttribute('datetime'), ack.received_at)
  t.equal(await connection(page), 'receiving')
  t.equal(await page.locator('#first-webhook').count(), 0)
  await untilText(tile(page, 'generic:shop', '[data-recent-count]'), '1')
  const last = tile(page, 'generic:shop', '[data-last-event] time')
  t.equal(await last.getAttribute('datetime'), ack.received_at)

  await t.test('counts and times stand beside the right provider', async (t) => {
    const second = await send(base, 'generic/shop', '{}')
    const signed = await deliver(base, 'code_host', '{"zen":1}', { 'X-CodeHost-Event': 'push' })
    const { id, received_at } = signed.json<{ id: number; received_at: string }>()
    await untilText(tile(page, 'generic:shop', '[data-recent-count]'), '2')
    await untilText(tile(page, 'code_host', '[data-recent-count]'), '1')
    t.equal(await textOf(tile(page, 'payments', '[data-recent-count]')), '0')
    t.equal(await textOf(tile(page, 'payments', '[data-last-event]')), 'never')
    t.equal(await last.getAttribute('datetime'), second.received_at)
    const time = tile(page, 'code_host', '[data-last-event] time')
    t.equal(await time.getAttribute('datetime'), received_at)
    t.same(await rowIds(page), [id, second.id, ack.id])
    t.equal(await textOf(page.locator(`tr[data-id="${id}"] .verify`)), 'verified')
  })

  await t.test('the live row is the one that a reload shows', async (t) => {
    t.equal(await page.locator('main').getAttribute('data-mark'), 'kept')
    const rows = page.locator('#recent-rows > tr')
    const before = await rows.allInnerTexts()
    await page.reload()
    t.same(await rows.allInnerTexts(), before)
    await row.getByRole('link').click()
    t.equal(new URL(page.url()).pathname, `/log/${ack.id}`)
  })
})

await onPostgres(t, 'the dashboard survives a crash of the server', async (t: Test, backend) => {
  const { server, base, env } = await startHooksProcess(t, backend)
  await addProvider(base, 'shop', { open: true })
  // Soon back, so that the test waits less; the page takes it from the stream.
  await postForm(base, '/settings', { sse_retry_ms: '250' })
  const { page, context } = await browse(t, base, { expectedErrors: [CONNECTION_LOST] })
  const old = await send(base, 'generic/shop')
  await page.goto(`${base}/`)
  const live = await send(base, 'generic/shop')
  await page.locator(`tr[data-id="${live.id}"]`).waitFor()

  await server.kill()
  await untilText(page.locator('[data-connection-label]'), 'reconnecting…')
  t.equal(await page.locator('[data-connection]').getAttribute('data-connection'), 'reconnecting')
  // Off the network until both have arrived: they come by resuming the stream, not live.
  await context.setOffline(true)
  const host = new URL(base).host
  await startServer(t, { services: ['hooks'], env: { ...env, HOOKS_ADDR: host } })
  const missed = [await send(base, 'generic/shop'), await send(base, 'generic/shop')]
  t.equal(await connection(page), 'reconnecting…')
  await context.setOffline(false)

  const ids = [...missed.map(({ id }) => id).reverse(), live.id, old.id]
  await until(async () => (await rowIds(page)).length >= ids.length, 'the missed events')
  await untilText(page.locator('[data-connection-label]'), 'receiving')
  await untilText(tile(page, 'generic:shop', '[data-recent-count]'), '4')
  const next = await send(base, 'generic/shop')
  await page.locator(`tr[data-id="${next.id}"]`).waitFor()
  t.same(await rowIds(page), [next.id, ...ids], 'each once, newest first')
  t.equal(await textOf(page.locator('#problem')), '', 'nothing was skipped')
})

await t.test('the page comes back after answers that are no stream', async (t) => {
  const { base } = await startHooksProcess(t, backends[0])
  await addProvider(base, 'shop', { open: true })
  const { page } = await browse(t, base, { expectedErrors: [loadFailure(502)] })
  // A proxy in front answers so while the service restarts, and EventSource gives up on it.
  let refusals = 0
  await page.route('**/events*', async (route) => {
    refusals += 1
    if (refusals === 1) await route.fulfill({ status: 502, body: 'bad gateway' })
    else await route.continue()
  })
  const old = await send(base, 'generic/shop')
  await page.goto(`${base}/`)
  await untilText(page.locator('[data-connection-label]'), 'reconnecting…')
  const missed = await send(base, 'generic/shop')
  await page.locator(`tr[data-id="${missed.id}"]`).waitFor()
  t.same(await rowIds(page), [missed.id, old.id])
  await untilText(page.locator('[data-connection-label]'), 'receiving')
})

await t.test('more events than the list is long', async (t) => {
  const { base } = await startHooksProcess(t, backends[1])
  await addProvider(base, 'shop', { open: true })
  const { page } = await browse(t, base)
  await page.goto(`${base}/`)
  const sent: number[] = []
  for (let count = 0; count < 25; count++) sent.unshift((await send(base, 'generic/shop')).id)
  await page.locator(`tr[data-id="${sent[0]}"]`).waitFor()
  t.same(await rowIds(page), sent.slice(0, 20), 'the newest 20')
  await untilText(tile(page, 'generic:shop', '[data-recent-count]'), '25')
})
