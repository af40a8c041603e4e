import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import {
  beginByHand,
  ended,
  endByHand,
  startGate,
  startOps,
  trigger,
  type Memory,
} from '../helpers/ops.ts'
import { until } from '../helpers/until.ts'
import { browse, clickButton, clickLink, loadFailure, textOf, untilText } from './pages.ts'

const gate = await startGate(t)
/** One service for all tests of this file. */
const ops = await startOps(t, postgres, { OPS_INVENTORY: gate.inventory })
gate.open()
await ended(ops)
const { page, newPage } = await browse(t, ops.base, {
  expectedErrors: [400, 409].map(loadFailure),
})

await t.test('a session from its trigger to its end, live', async (t) => {
  gate.shut()

  await t.test('triggered on the dashboard', async (t) => {
    await page.goto(`${ops.base}/`)
    await page.getByLabel('What to look into').fill('why is <b>it</b> slow?')
    await page.getByLabel('Tier').selectOption('3')
    await clickButton(page, 'Start session')
    await page.waitForURL(/\/sessions\/\d+/)
    await untilText(page.locator('#live-state'), 'live')
    await until(() => gate.waiting() === 1, 'the session to wait')
    await page.goto(`${ops.base}/`)
    await page.getByLabel('What to look into').fill('another')
    await clickButton(page, 'Start session')
    await untilText(page.locator('#trigger-refused'), /A session is running/)
    await untilText(page.locator('#now .activity'), 'running')
    await untilText(page.locator('#last-lines'), '1 checks of 1 services')
    t.equal(await page.getByLabel('What to look into').inputValue(), 'another', 'it stays')
  })

  await t.test('followed, then it ends by itself', async (t) => {
    await page.goto(`${ops.base}/`)
    await page.locator('#now a').first().click()
    await untilText(page.locator('#live-state'), 'live')
    t.match(await textOf(page.locator('#session-head')), /running .*Tier 3/)
    t.equal(await page.locator('main b').count(), 0, 'its prompt is text')
    await gate.pass()
    await untilText(page.locator('#session-status'), 'completed')
    t.equal(await page.locator('#lines').count(), 0, 'it became the story')
    t.match(await textOf(page.locator('.turn')), /ok gate: gate: .*All 1 checks .* are good/)
    t.equal(await page.getByRole('button', { name: /^Stop/ }).count(), 0)
  })

  await t.test('stopped', async () => {
    gate.shut()
    const { id } = await trigger(ops)
    await until(() => gate.waiting() === 1, 'the session to wait')
    await page.goto(`${ops.base}/sessions/${id}`)
    await untilText(page.locator('#live-state'), 'live')
    await page.getByRole('button', { name: `Stop session ${id}` }).press('Enter')
    await untilText(page.locator('#session-status'), 'stopped')
    gate.open()
  })
})

await t.test('a story: a tool call unfolds, and the rest of its result comes', async (t) => {
  const id = await beginByHand(postgres, ops.env, 'read the journal')
  await postgres.query(
    ops.env,
    `insert into ops.session_lines (session_id, seq, at, kind, text, call)
     select $1, n, now(), case n when 1 then 'tool' when 101 then 'turn' else 'result' end,
            case n when 1 then 'journal {"lines":100}' when 101 then 'Turn 1' else 'row <b>' || n end,
            case when n < 101 then 1 end
       from generate_series(1, 101) as n`,
    [id],
  )
  await endByHand(postgres, ops.env, id, 'completed')
  await page.goto(`${ops.base}/sessions`)
  await page.locator(`tr[data-id="${id}"] .when.took`).click({ force: true })
  const call = page.locator('#call-1')
  await untilText(call.locator('summary'), /^journal \{ "lines": 100 \} ok/)
  t.notOk(await call.getByText('row <b>2').isVisible(), 'it is folded')
  await call.locator('summary').click()
  await call.getByText('row <b>2').waitFor()
  t.equal(await call.getByText('row <b>100').count(), 0)
  await clickLink(call, 'Show all of it')
  await call.getByText('row <b>100').waitFor()
  t.equal(await call.getByRole('link').count(), 0)
})

await t.test('the dashboard keeps up by itself', async (t) => {
  const refreshed = (path: string) =>
    checks.waitForResponse((response) => new URL(response.url()).pathname === path)
  gate.open()
  await trigger(ops)
  await ended(ops)
  await page.goto(`${ops.base}/`)
  await untilText(page.locator('#now .health'), /^All well: 1 of 1 check good, last checked/)
  const today = page.locator('#spend a[href^="/sessions?when=today"]')
  const before = Number.parseInt(await textOf(today))
  await ended(ops, (await trigger(ops)).id)
  await untilText(today, new RegExp(`^${before + 1} sessions`))
  const checks = await newPage()
  await checks.goto(`${ops.base}/checks`)
  const service = checks.locator('#checks details:not(.more-menu)')
  await service.locator('> summary').click()
  await refreshed('/checks')
  await refreshed('/checks')
  t.equal(await service.getAttribute('open'), '', 'what was opened stays open')
  gate.open(false)
  const { id } = await trigger(ops)
  await ended(ops, id)
  await untilText(page.locator('#now .health'), /^1 check fails: gate: gate, last checked/)
  await checks.locator('#service-gate[data-opens][open]').waitFor()
  await checks.keyboard.press('j')
  await checks.keyboard.press('Enter')
  await checks.waitForURL(/\/checks\/\d+$/)
  gate.open()
  await ended(ops, (await trigger(ops)).id)
})

await t.test('what the last night cost takes one action', async (t) => {
  await postgres.query(
    ops.env,
    `insert into ops.sessions (tier, model, status, trigger, started_at, ended_at, cost_usd, holder, machine, heartbeat_at)
     select 1, 'none', status, 'scheduled', current_date at time zone 'UTC' - n * interval '1 hour', now(), cost, '', '', now()
       from (values ('completed', 2, 0.25), ('failed', 3, 0.16), ('completed', 30, 7)) as night (status, n, cost)`,
  )
  await page.goto(`${ops.base}/`)
  const night = page
    .locator('#spend')
    .getByRole('link', { name: /\$0\.41, 1 failed$/ })
    .first()
  await night.waitFor()
  await night.click()
  await untilText(page.locator('#sessions-results .count'), /sessions, \$0\.41, 1 failed$/)
  t.equal(await page.getByLabel('Time').inputValue(), 'night')

  await t.test('own days have their fields once they are chosen', async (t) => {
    t.notOk(await page.getByLabel('First day').isVisible())
    await page.getByLabel('Time').selectOption('days')
    const day = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10)
    await page.getByLabel('First day').fill('2020-01-01')
    await page.getByLabel('Last day').fill(day)
    await page.getByLabel('Last day').press('Tab')
    await untilText(page.locator('#sessions-results .count'), '1 session, $7.00')
  })
})

await t.test('nights, days and hours are those of the reader, who is told the zone', async (t) => {
  const zone = 'Pacific/Kiritimati'
  const midnight = Temporal.Now.zonedDateTimeISO(zone).startOfDay()
  // The last night there; in UTC it is the morning.
  const at = midnight.subtract({ hours: 1 }).toInstant().toString()
  await postgres.query(
    ops.env,
    `insert into ops.sessions (tier, model, status, trigger, started_at, ended_at, cost_usd, holder, machine, heartbeat_at)
     values (1, 'none', 'completed', 'scheduled', '${at}', now(), 3.33, '', '', now())`,
  )
  const { page } = await browse(t, ops.base, { timezoneId: zone })
  await page.goto(`${ops.base}/`)
  await untilText(page.locator('#spend .title-line'), `Spent ${zone}`)
  await untilText(page.locator('#services title').last(), /^\d+ \w+ \d{4}, \d\d:00 GMT\+14: /)
  await page
    .locator('#spend')
    .getByRole('link', { name: /\$3\.33$/ })
    .first()
    .click()
  await untilText(page.locator('#sessions-results .count'), /\$3\.33$/)
  t.equal(await page.locator('.zone').innerText(), zone)
  await page.getByLabel('Time').selectOption('week')
  await page.locator('.zone').waitFor({ state: 'hidden' })
  await page.goto(`${ops.base}/sessions`)
  await page.getByLabel('Time').selectOption('night')
  await untilText(page.locator('#sessions-results .count'), /\$3\.33$/)
  t.equal(new URL(page.url()).searchParams.get('zone'), zone)

  await t.test('the clock of a session, and the hours of a check', async (t) => {
    await page.goto(`${ops.base}/sessions/1?lines=1`)
    await untilText(page.locator('#output-title'), `Output (times in ${zone})`)
    const line = page.locator('#lines time').first()
    const instant = Temporal.Instant.from(String(await line.getAttribute('datetime')))
    const { hour, minute, second } = instant.toZonedDateTimeISO(zone)
    const clock = [hour, minute, second].map((part) => String(part).padStart(2, '0')).join(':')
    t.equal(await textOf(line), clock)
    const { json } = await ops.api<{ checks: readonly { id: number }[] }>('GET', '/checks')
    await page.goto(`${ops.base}/checks/${json.checks[0]?.id}`)
    const chart = page.locator('#history svg').first()
    await untilText(chart.locator('title').last(), /, \d\d:00 GMT\+14: /)
    t.match(await textOf(page.locator('#history svg').nth(1).locator('title').last()), /\(UTC\)/)
  })
})

await t.test('a memory, changed in its place', async (t) => {
  /** Those of people: a session of a busy machine may have noted that a check is slow. */
  const memories = async () => {
    const { json } = await ops.api<{ memories: readonly Memory[] }>('GET', '/memories')
    return json.memories.filter(({ tier }) => tier === 0)
  }

  await page.goto(`${ops.base}/memories`)
  await page.getByText('New memory…').click()
  await page.locator('#new-category').fill('timing')
  await page.locator('#new-observation').fill('slow <b>mornings</b>')
  await clickButton(page, 'Add memory')
  const made = await until(async () => (await memories())[0], 'the memory')
  const card = page.locator(`#memory-${made.id}`)
  await untilText(card.locator('.observation'), 'slow <b>mornings</b>')
  await card.getByText('Edit…').click()
  await card.getByLabel('Observation').fill('slow evenings')
  await clickButton(card, 'Save')
  await untilText(card.locator('.observation'), 'slow evenings')
  await card.getByText('Edit…').click()
  await card.getByLabel('Observation').fill('   ')
  await clickButton(card, 'Save')
  await untilText(card.locator('.refused'), /Observation is required/)
  page.once('dialog', (dialog) => void dialog.accept())
  await clickButton(card, 'Delete')
  await page.getByText('Deleted.').waitFor()
  t.same(await memories(), [])
})
