import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { startServer } from '../helpers/server.ts'
import { startHooks } from '../helpers/signing-setup.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'
import { browse, loadFailure, untilText } from './pages.ts'

const SAVED = {
  retention_max_age_days: '7',
  retention_max_rows: '0',
  sse_retry_ms: '250',
  replay_default_target: 'https://example.com/hook?a=1&b=2',
} as const

await onPostgres(t, 'settings are saved and stay', async (t: Test, backend) => {
  const { server, base, env } = await startHooks(t, backend)
  const { page } = await browse(t, base)
  await page.goto(`${base}/settings`)
  const field = (name: string): ReturnType<typeof page.locator> => page.locator(`#${name}`)
  t.equal(await field('retention_max_age_days').inputValue(), '30')
  t.equal(await field('retention_max_rows').inputValue(), '50000')
  t.equal(await field('sse_retry_ms').inputValue(), '3000')
  t.equal(await field('replay_default_target').inputValue(), '')
  t.equal(await page.getByText('0 = no limit').count(), 2)

  for (const [name, value] of Object.entries(SAVED)) await field(name).fill(value)
  await field('replay_default_target').press('Enter')
  await untilText(page.getByRole('status'), /^Saved\./)
  for (const [name, value] of Object.entries(SAVED)) {
    t.equal(await field(name).inputValue(), value, name)
  }
  const stream = await openStream(t, `${base}/events`)
  await until(() => stream.retry === 250, 'the new reconnection time')

  await page.reload()
  t.equal(await page.getByText(/^Saved/).count(), 0, 'the note is of the moment')
  await server.stop()
  const again = await startServer(t, {
    services: ['hooks'],
    env: { ...env, HOOKS_ADDR: new URL(base).host },
  })
  await page.goto(`${again.hooks}/settings`)
  for (const [name, value] of Object.entries(SAVED)) {
    t.equal(await field(name).inputValue(), value, `${name} after a restart`)
  }
})

await t.test('values that are refused', async (t: Test) => {
  const { base } = await startHooks(t, backends[0])
  const { page } = await browse(t, base, { expectedErrors: [loadFailure(422)] })
  const target = page.locator('#replay_default_target')
  const retry = page.locator('#sse_retry_ms')
  const save = page.getByRole('button', { name: 'Save settings' })
  const posts: string[] = []
  page.on('request', (request) => {
    if (request.method() === 'POST') posts.push(request.url())
  })
  await page.goto(`${base}/settings`)

  await t.test('by the server: the message shows, what was typed stays', async (t) => {
    await retry.fill('5000')
    await target.fill('ftp://example.com/hook')
    await save.click()
    await untilText(page.getByRole('alert'), /^replay_default_target must be an http:\/\//)
    t.equal(await target.inputValue(), 'ftp://example.com/hook')
    t.equal(await retry.inputValue(), '5000')
    t.equal(posts.length, 1)
    t.equal(await page.getByText(/^Saved/).count(), 0)
  })

  await t.test('by the browser: nothing is sent', async (t) => {
    await target.fill('')
    for (const value of ['249', '-1', '1.5', '']) {
      await retry.fill(value)
      await save.click()
      t.equal(await page.locator('#sse_retry_ms:invalid').count(), 1, `'${value}'`)
      t.equal(await retry.inputValue(), value)
    }
    t.equal(posts.length, 1)
  })

  await t.test('corrected, it is saved and the message goes', async (t) => {
    await retry.fill('4000')
    await save.click()
    await untilText(page.getByRole('status'), /^Saved\./)
    t.equal(await page.getByRole('alert').count(), 0)
    await page.reload()
    t.equal(await retry.inputValue(), '4000')
  })

  await t.test('the configuration below holds no secret', async (t) => {
    // The run fails on any page that shows the secret itself.
    const table = page.getByRole('table', { name: 'Configuration, read-only' })
    const row = table.getByRole('row').filter({ hasText: 'HOOKS_CHAT_SECRET' }).first()
    t.match(await row.innerText(), /^HOOKS_CHAT_SECRET\s+\S/)
  })
})
