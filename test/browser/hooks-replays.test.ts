import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { addProvider, post, refusals, startHooks } from '../helpers/hooks.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'
import {
  browse,
  clickCopy,
  copiedOn,
  focusedId,
  loadFailure,
  rememberCopies,
  send,
  textOf,
  untilText,
} from './pages.ts'

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
await addProvider(base, 'ci')

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

await t.test('why was it refused: three actions from the dashboard', async (t: Test) => {
  for (let n = 0; n < 2; n++) {
    await post(base, 'generic/ci', '{}', { Authorization: 'Bearer wrong-token' })
  }
  await until(async () => (await refusals(base)).length === 2, 'both refusals')
  const { page } = await browse(t, base)
  await page.goto(base)
  let actions = 0
  const click = async (role: 'link' | 'summary', name: string): Promise<void> => {
    actions += 1
    const all = role === 'link' ? page.getByRole(role, { name, exact: true }) : page.locator(role)
    await all.filter({ hasText: name }).first().click()
  }
  await click('link', 'Log')
  await click('link', 'Rejected')
  await click('summary', 'wrong token')
  t.equal(actions, 3)
  const group = page.locator('.openable[data-provider="generic:ci"]')
  t.match(await textOf(group), /wrong token.*generic:ci.*2×/)
  await group.getByText('The sender has another token').waitFor()
  await group.getByText("The provider's token: in Authorization").waitFor()
  await group.getByRole('link', { name: 'Rotate…' }).waitFor()
})

await t.test('an event: its payload in sight, parts by tabs, names copy', async (t: Test) => {
  const body = '{"data":{"list":[{"sku":"A-1"}]}}'
  const { id } = await send(base, 'generic/shop', body)
  const { page, context } = await browse(t, base, { viewport: { width: 1280, height: 800 } })
  await rememberCopies(context)
  for (const path of [`/log/${id}`, `/log?open=${id}`]) {
    await page.goto(base + path)
    const sku = page.locator('.json').getByRole('button', { name: 'sku' })
    t.ok(((await sku.boundingBox())?.y ?? 800) < 780, `above the fold at ${path}`)
    await sku.focus()
    await page.keyboard.press('Enter')
    await until(async () => (await copiedOn(page)) === 'data.list.0.sku', 'the path to be copied')
    await clickCopy(
      page.getByRole('button', { name: 'Copy payload' }),
      page.getByRole('button', { name: 'Copied payload' }),
    )
    t.equal(await copiedOn(page), body)
    for (const tab of ['request', 'deliveries', 'curl', 'payload']) {
      await page.locator(`#tab-${tab}`).focus()
      await page.keyboard.press('Enter')
      await page.locator(`#tab-${tab}[aria-current]`).waitFor()
      t.equal(await focusedId(page), `tab-${tab}`)
    }
    await page.getByRole('link', { name: 'Compare with previous' }).click()
    await page.getByText('Compared with').waitFor()
    const { pathname, search } = new URL(page.url())
    t.equal(pathname + search, path, 'all of it in place')
  }
})

await t.test('an event that opens beside the list is announced', async (t: Test) => {
  const { page } = await browse(t, base, { viewport: { width: 1600, height: 900 } })
  await page.goto(`${base}/log?event_type=order.paid`)
  await page.locator('#log-rows .row-link').first().click()
  const said = page.locator('[role="status"]', { hasText: 'Opened beside the list' })
  await untilText(said, /^Opened beside the list: order\.paid unchecked, event \d+$/)
})
