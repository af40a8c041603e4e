import { t } from 'tap'
import type { Page } from 'playwright-core'
import { postgres } from '../helpers/backends.ts'
import {
  beginByHand,
  endByHand,
  ended,
  inventoryFile,
  opsServer,
  storeLines,
} from '../helpers/ops.ts'
import { freePort } from '../helpers/owner.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { startServer } from '../helpers/server.ts'
import { SIGNED_ENV, addProvider, postForm } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'
import { browse, rowIds, send, textOf, tile, untilText } from './pages.ts'

/** What Chromium writes when the stream breaks and while nobody listens. */
const CONNECTION_LOST = /Failed to load resource|net::ERR_|htmx:error/

/** The numbers of the lines on the page, from top to bottom. */
function lines(page: Page) {
  return page
    .locator('#lines > .line')
    .evaluateAll((rows: readonly { dataset: { seq: string } }[]) =>
      rows.map(({ dataset }) => Number(dataset.seq)),
    )
}

function upTo(count: number) {
  return Array.from({ length: count }, (_, at) => at + 1)
}

/** One crash for all pages that must outlive it: a process is needed for that. */
await t.test('open pages survive a crash of the server', async (t) => {
  const env = {
    ...SIGNED_ENV,
    ...(await postgres.env(t)),
    OPS_INVENTORY: await inventoryFile(t, { services: [] }),
    // The next server listens on the same ones.
    HOOKS_ADDR: `127.0.0.1:${await freePort()}`,
    OPS_ADDR: `127.0.0.1:${await freePort()}`,
  }
  const server = await startServerProcess(t, { services: ['hooks', 'ops'], env })
  const { hooks, ops } = server
  await ended(opsServer(server, env))
  await addProvider(hooks, 'shop', { open: true })
  const options = { origins: [hooks, ops], expectedErrors: [CONNECTION_LOST] }
  const { page: dashboard, context, newPage } = await browse(t, hooks, options)
  // Soon back: the pages take it from the stream.
  await postForm(hooks, '/settings', { sse_retry_ms: '250' })

  const old = await send(hooks, 'generic/shop')
  const label = dashboard.locator('.connection')
  await dashboard.goto(`${hooks}/`)
  const live = await send(hooks, 'generic/shop')
  await dashboard.locator(`tr[data-id="${live.id}"]`).waitFor()

  const session = await beginByHand(postgres, env)
  await storeLines(postgres, env, session, 1, 5)
  const follower = await newPage()
  await follower.goto(`${ops}/sessions/${session}`)
  await untilText(follower.locator('#live-state'), 'live')
  await storeLines(postgres, env, session, 6, 5)
  await until(async () => (await lines(follower)).length === 10, 'ten lines')

  await server.kill()
  await untilText(label, 'reconnecting…')
  await untilText(follower.locator('#live-state'), 'reconnecting…')
  await storeLines(postgres, env, session, 11, 5)
  // Off the network until both events have arrived: they come by resuming the stream, not live.
  await context.setOffline(true)
  const again = await startServer(t, { services: ['hooks', 'ops'], env })
  t.same([again.hooks, again.ops], [hooks, ops])
  const missed = [await send(hooks, 'generic/shop'), await send(hooks, 'generic/shop')]
  t.equal(await textOf(label), 'reconnecting…')
  await context.setOffline(false)

  await t.test('the dashboard has what it missed, each once', async (t) => {
    const ids = [...missed.map(({ id }) => id).reverse(), live.id, old.id]
    await until(async () => (await rowIds(dashboard)).length >= ids.length, 'the missed events')
    await untilText(label, 'receiving')
    await untilText(tile(dashboard, 'generic:shop', '.counts'), '4 received')
    const next = await send(hooks, 'generic/shop')
    await dashboard.locator(`tr[data-id="${next.id}"]`).waitFor()
    t.same(await rowIds(dashboard), [next.id, ...ids], 'newest first')
    t.equal(await textOf(dashboard.locator('#problem')), '', 'nothing was skipped')
  })

  await t.test('the page of a session resumes: no hole, no repeat', async (t) => {
    await until(async () => (await lines(follower)).length >= 15, 'what came meanwhile', 30_000)
    await storeLines(postgres, env, session, 16, 60)
    await until(async () => (await lines(follower)).length >= 75, 'what came then')
    t.same(await lines(follower), upTo(75))
    const scrolled = 'lines.scrollHeight - lines.scrollTop - lines.clientHeight'
    await until(async () => (await follower.evaluate<number>(scrolled)) < 5, 'the end in view')
    await follower.getByLabel('Follow').uncheck()
    await follower.evaluate('lines.scrollTop = 0')
    await storeLines(postgres, env, session, 76, 1)
    await until(async () => (await lines(follower)).length === 76, 'one more')
    t.equal(await follower.evaluate('lines.scrollTop'), 0, 'it stays where the reader is')
    t.same(await lines(follower), upTo(76))
    await endByHand(postgres, env, session, 'completed')
    await untilText(follower.locator('#session-status'), 'completed')
    await untilText(follower.locator('.turn'), /^line 1 line 2 .* line 76$/)
  })
})
