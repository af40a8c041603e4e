import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { addDestination, destination, retry, untilListed } from '../helpers/destinations.ts'
import { addProvider, startHooks } from '../helpers/hooks.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'
import {
  browse,
  clickLink,
  copiedOn,
  focusedId,
  hasMark,
  leaveMark,
  loadFailure,
  rememberCopies,
  send,
  tabTo,
  textOf,
  untilText,
} from './pages.ts'

// What is sent on: to destinations, by hand from an event, and many at once.

/** Answers that the receiver holds back. */
const held: (() => void)[] = []
/** What the receiver answers by path, besides 204. */
const answers: Record<string, number> = {}
const receiver = await startReceiver(t, ({ path }, response) => {
  const answer = () => void response.writeHead(answers[path] ?? 204).end()
  if (path === '/held') held.push(answer)
  else answer()
})
const { base, env } = await startHooks(t, postgres, {
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
})
for (const name of ['lan', 'shop']) await addProvider(base, name, { open: true })
const push = { 'X-Event-Type': 'push' }
const { page, context } = await browse(t, base, {
  viewport: { width: 1280, height: 800 },
  expectedErrors: [loadFailure(422)],
})
await rememberCopies(context)
page.on('dialog', (dialog) => void dialog.accept())

await t.test('all pushes elsewhere: matched, tried, added', async (t) => {
  await send(base, 'generic/lan', '{}', push)
  await send(base, 'generic/lan', '{}', { 'X-Event-Type': 'invoice.paid' })
  await page.goto(`${base}/destinations`)
  await page.click('a:has-text("Add a destination")')
  await page.fill('#add-url', `${receiver.url}/pushes`)
  await page.fill('#add-event_type', 'push')
  await untilText(page.locator('#matches'), 'Matches 1 of the last 2 events.')
  await page.click('#send-test')
  await untilText(page.locator('#test-result'), /^test ok Answered 204 in \d+ ms$/)
  t.equal(receiver.received.at(-1)?.path, '/pushes')
  t.equal(await page.inputValue('#add-event_type'), 'push', 'what is typed stays')
  await page.click('#add-button')
  await untilText(page.locator('#done'), /^Added 127-0-0-1-\d+\.$/)
  const box = await page.locator('#done').boundingBox()
  t.ok(box !== null && box.y >= 0 && box.y + box.height <= 800, 'what was done is in sight')
  await send(base, 'generic/lan', '{}', push)
  await untilText(page.locator('#title'), / 1 delivered/)
})

await t.test('the page of a destination', async (t) => {
  answers['/in'] = 503
  /** The last of their tries is made at once for those that wait. */
  async function giveUp(waiting: number) {
    await untilListed(base, 'erp', { waiting, last_status: 503 })
    await postgres.query(env, 'update hooks.destination_deliveries set tries = 7')
    await retry(base, 'erp')
  }
  const event_types = ['invoice.*', 'push']
  await addDestination(base, 'erp', `${receiver.url}/in`, { event_types })
  for (const type of ['push', 'invoice.paid', 'invoice.failed']) {
    await send(base, 'generic/lan', '{}', { 'X-Event-Type': type })
  }
  await giveUp(3)
  await untilListed(base, 'erp', { dead: 3 })
  await t.test('it is live, and the ticked ones are tried again', async (t) => {
    await page.goto(`${base}/destinations/erp?state=dead`)
    await page.click('#edit > summary')
    await page.click('#edit summary:has-text("How they are sent…")')
    await page.fill('#set-rate', '7')
    await page.check('#deliveries input[type=checkbox] >> nth=0')
    await send(base, 'generic/lan', '{}', push)
    await giveUp(1)
    await untilText(page.locator('#deliveries tbody'), /push.*invoice.paid.*invoice.failed.*push/)
    t.equal(await page.inputValue('#set-rate'), '7', 'what is typed stays')
    t.ok(await page.isChecked('#deliveries input[type=checkbox] >> nth=0'), 'so does a tick')
    await destination(env, 'disable', 'erp')
    await untilText(page.locator('#toggle-erp'), 'Disabled')
    await page.click('#toggle-erp')
    await untilText(page.locator('#toggle-erp'), 'Enabled')
    t.equal(await page.inputValue('#set-rate'), '7', 'the switch leaves what is typed')
    t.ok(await page.isChecked('#deliveries input[type=checkbox] >> nth=0'), 'a tick stays')
    answers['/in'] = 204
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
    await page.click('summary:has-text("Remove…")')
    await page.click('button.danger')
    await untilText(page.locator('#done'), 'Removed erp.')
    t.equal(new URL(page.url()).pathname, '/destinations')
  })
})

await t.test('from the log: counted, started, followed, cancelled', async (t) => {
  for (let n = 0; n < 3; n++) {
    await send(base, 'generic/shop', `{"n":${n}}`, { 'X-Event-Type': 'order.paid' })
  }
  const target = page.locator('#job-target-target_url')
  const start = page.locator('#start-replay')
  await page.goto(`${base}/log?event_type=order.paid`)
  await clickLink(page, 'Replay…')
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

await t.test('an event: its payload in sight, parts by tabs, names copy', async (t) => {
  const { id } = await send(base, 'generic/shop', '{"data":{"list":[{"sku":"A-1"}]}}')
  for (const path of [`/log/${id}`, `/log?open=${id}`]) {
    await page.goto(base + path)
    const sku = page.locator('.json').getByRole('button', { name: 'sku' })
    t.ok(((await sku.boundingBox())?.y ?? 800) < 780, `above the fold at ${path}`)
    await sku.focus()
    await page.keyboard.press('Enter')
    await until(async () => (await copiedOn(page)) === 'data.list.0.sku', 'the path to be copied')
    for (const tab of ['request', 'deliveries', 'curl', 'payload']) {
      await page.locator(`#tab-${tab}`).focus()
      await page.keyboard.press('Enter')
      await page.locator(`#tab-${tab}[aria-current]`).waitFor()
      t.equal(await focusedId(page), `tab-${tab}`)
    }
    await clickLink(page, 'Compare with previous')
    await page.getByText('Compared with').waitFor()
    const { pathname, search } = new URL(page.url())
    t.equal(pathname + search, path, 'all of it in place')
  }
})

await t.test('an event that opens beside the list is announced', async () => {
  await page.setViewportSize({ width: 1600, height: 900 })
  await page.goto(`${base}/log?event_type=order.paid`)
  await page.locator('#log-rows .row-link').first().click()
  const said = page.locator('[role="status"]', { hasText: 'Opened beside the list' })
  await untilText(said, /^Opened beside the list: order\.paid unchecked, event \d+$/)
})

await t.test('an event is sent on from its page', async (t) => {
  const { id } = await send(base, 'generic/shop', '{"total": 1}')
  const said = page.locator('#attempts [role="status"]')
  const outcomes = () => page.locator('#attempt-rows .verify').allInnerTexts()
  await page.goto(`${base}/log/${id}`)

  await t.test('the browser asks for a target where there is no default', async (t) => {
    await page.locator('#replay-menu > summary').click()
    await page.locator('#replay-button').click()
    t.equal(await focusedId(page), 'target_url')
    t.equal(await page.locator('#target_url:invalid').count(), 1)
  })

  await t.test('by keyboard, without a reload, and again to the same target', async (t) => {
    const target = `${receiver.url}/hook`
    await leaveMark(page)
    await tabTo(page, 'target_url')
    await page.keyboard.type(target)
    await tabTo(page, 'replay-button')
    await page.keyboard.press('Enter')
    await untilText(said, /^Delivered: 204 in \d+ ms\.$/)
    t.equal(await focusedId(page), 'outcome')
    t.equal(await textOf(page.locator('#tab-deliveries')), 'Deliveries (1)')
    t.equal(receiver.received.at(-1)?.body.toString(), '{"total": 1}')
    answers['/hook'] = 503
    await page.locator('#replay-menu > summary').press('Enter')
    await page.getByRole('button', { name: target }).press('Enter')
    await untilText(said, /^Not delivered: the target answered 503 in \d+ ms\.$/)
    t.same(await outcomes(), ['failed', 'delivered'])
    t.ok(await hasMark(page))
    const times = await page
      .locator('#attempts time')
      .evaluateAll((list: readonly { title: string }[]) => list.map(({ title }) => title))
    for (const title of times) t.match(title, /UTC/, 'in the time zone of the reader')
  })

  await t.test('two quick clicks send once', async (t) => {
    const sent = receiver.received.length
    const rows = (await outcomes()).length
    await page.locator('#replay-menu > summary').click()
    await page.locator('#target_url').fill(receiver.url)
    // In one task: no answer can come between them.
    await page.locator('#replay-button').evaluate((button: { click(): void }) => {
      button.click()
      button.click()
    })
    await until(async () => (await outcomes()).length > rows, 'the row of the attempt')
    t.equal((await outcomes())[0], 'delivered')
    await page.reload()
    t.equal(receiver.received.length, sent + 1)
  })
})
