import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { addProvider, startHooks } from '../helpers/hooks.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'
import { browse, loadFailure, send, untilText } from './pages.ts'

/** Answers that the receiver holds back. */
const held: (() => void)[] = []
const receiver = await startReceiver(t, ({ path }, response) => {
  const answer = () => void response.writeHead(204).end()
  if (path === '/held') held.push(answer)
  else answer()
})
const { base } = await startHooks(t, backends[1], {
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
})
await addProvider(base, 'shop', { open: true })
for (let n = 0; n < 3; n++) {
  await send(base, 'generic/shop', `{"n":${n}}`, { 'X-Event-Type': 'order.paid' })
}

await t.test('from the log: counted, started, followed, cancelled', async (t: Test) => {
  const { page } = await browse(t, base, { expectedErrors: [loadFailure(422)] })
  page.on('dialog', (dialog) => void dialog.accept())
  const target = page.locator('#job-target-target_url')
  const start = page.locator('#start-replay')
  await page.goto(`${base}/log?event_type=order.paid`)
  await page.getByRole('link', { name: 'Replay…' }).click()
  await untilText(start, 'Replay 3 events')
  await target.fill('http://10.0.0.1/')
  await start.click()
  await page.getByText('not on the public internet').waitFor()
  t.equal(await target.inputValue(), 'http://10.0.0.1/', 'what was typed stays')

  await target.fill(`${receiver.url}/held`)
  await start.click()
  const job = page.locator('#job')
  await page.locator('#job[data-state="sending"]').waitFor()
  t.match(new URL(page.url()).pathname, /^\/replays\/\w{16}$/, 'a reload shows the same')
  await until(() => held.length === 3, 'the events')
  held.pop()?.()
  await untilText(job, /Delivered 1 /)
  await page.locator('#cancel-replay').click()
  await page.locator('#job[data-state="cancelled"]').waitFor()
  await untilText(job, /Not sent 2 /)
  for (const answer of held.splice(0)) answer()

  await page.goto(`${base}/replays`)
  await untilText(page.locator('[data-job] .verify'), 'cancelled')
})

await t.test('without script', async (t: Test) => {
  const { page } = await browse(t, base, {
    javaScriptEnabled: false,
    expectedErrors: [loadFailure(422)],
  })
  await page.goto(`${base}/log`)
  await page.getByRole('link', { name: 'Replay…' }).click()
  await page.locator('#job-target-target_url').fill('http://10.0.0.1/')
  await page.locator('#start-replay').click()
  await untilText(page.locator('#job-target-target_url-refused'), /not on the public internet/)
  await page.locator('#job-target-target_url').fill(`${receiver.url}/held`)
  await page.locator('#start-replay').click()
  t.match(new URL(page.url()).pathname, /^\/replays\/\w{16}$/)
  await page.locator('#cancel-replay').click()
  await page.locator('#job[data-state="cancelled"]').waitFor()
  for (const answer of held.splice(0)) answer()
})
