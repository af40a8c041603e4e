import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { beginByHand, endByHand, storeLines } from '../helpers/ops-lines.ts'
import { ended, startGate, startOps, trigger } from '../helpers/ops-setup.ts'
import type { Memory, Session } from '../helpers/ops-setup.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { browse, loadFailure, textOf, untilText } from './pages.ts'

const postgres = backends[1]

/** The numbers of the lines on the page, from top to bottom. */
function shown(page: Page): Promise<readonly number[]> {
  return page
    .locator('#lines > .line')
    .evaluateAll((rows: readonly { dataset: { seq: string } }[]) =>
      rows.map(({ dataset }) => Number(dataset.seq)),
    )
}

function upTo(count: number): readonly number[] {
  return Array.from({ length: count }, (_, at) => at + 1)
}

await t.test('a session from its trigger to its end, live', async (t: Test) => {
  const gate = await startGate(t)
  const ops = await startOps(t, postgres, { OPS_INVENTORY: gate.inventory })
  gate.open(true)
  await ended(ops)
  gate.shut()
  const { page } = await browse(t, ops.base, { expectedErrors: [loadFailure(409)] })

  await t.test('triggered on the dashboard', async (t) => {
    await page.goto(`${ops.base}/`)
    await page.getByLabel('What to look into').fill('why is <b>it</b> slow?')
    await page.getByLabel('Tier').selectOption('3')
    await page.getByRole('button', { name: 'Start session' }).click()
    await page.locator('#trigger .saved a').waitFor()
    await until(() => gate.waiting() === 1, 'the session to wait')
    await page.getByLabel('What to look into').fill('another')
    await page.getByRole('button', { name: 'Start session' }).click()
    await untilText(page.locator('#trigger-refused'), /A session is running/)
    t.equal(await page.getByLabel('What to look into').inputValue(), 'another')
    await untilText(page.locator('#now .connection'), 'running')
    t.equal(await page.getByLabel('What to look into').inputValue(), 'another', 'it stays')
  })

  await t.test('followed, then it ends by itself', async (t) => {
    await page.goto(`${ops.base}/`)
    await page.locator('#now a').first().click()
    await untilText(page.locator('#live-state'), 'live')
    t.match(await textOf(page.locator('#session-head')), /running .*Tier 3/)
    t.equal(await page.locator('main b').count(), 0, 'its prompt is text')
    gate.open()
    await untilText(page.locator('#session-status'), 'completed')
    await untilText(page.locator('#live-state'), 'completed')
    t.same(await shown(page), [1, 2, 3])
    t.match(await textOf(page.locator('#lines')), /All 1 checks of 1 services are good/)
    t.equal(await page.getByRole('button', { name: /^Stop/ }).count(), 0)
    t.match(await textOf(page.locator('#session-head .summary')), /are good/)
  })

  await t.test('stopped', async (t) => {
    gate.shut()
    const { id } = await trigger(ops)
    await until(() => gate.waiting() === 1, 'the session to wait')
    await page.goto(`${ops.base}/sessions/${id}`)
    await untilText(page.locator('#live-state'), 'live')
    await page.getByRole('button', { name: `Stop session ${id}` }).press('Enter')
    await untilText(page.locator('#session-status'), 'stopped')
    t.equal((await ops.api<Session>('GET', `/sessions/${id}`)).json.status, 'stopped')
    gate.open(true)
  })
})

await t.test('the page resumes after its server went away: no hole, no repeat', async (t: Test) => {
  const first = await startOps(t, postgres)
  await ended(first)
  const session = await beginByHand(postgres, first.env)
  await storeLines(postgres, first.env, session, 1, 5)
  const refused = /Failed to load resource|ERR_/
  const { page } = await browse(t, first.base, { expectedErrors: [refused] })
  await page.goto(`${first.base}/sessions/${session}`)
  await untilText(page.locator('#live-state'), 'live')
  await storeLines(postgres, first.env, session, 6, 5)
  await until(async () => (await shown(page)).length === 10, 'ten lines')
  await first.server.stop()
  await untilText(page.locator('#live-state'), 'reconnecting…')
  await storeLines(postgres, first.env, session, 11, 5)
  const env = { ...first.env, OPS_ADDR: new URL(first.base).host }
  const second = await startServer(t, { services: ['ops'], env })
  t.equal(second.ops, first.base)
  await until(async () => (await shown(page)).length >= 15, 'what came meanwhile', 30_000)
  await storeLines(postgres, first.env, session, 16, 60)
  await until(async () => (await shown(page)).length >= 75, 'what came then')
  t.same(await shown(page), upTo(75))
  const scrolled = 'lines.scrollHeight - lines.scrollTop - lines.clientHeight'
  await until(async () => (await page.evaluate<number>(scrolled)) < 5, 'the end to be in view')
  await page.getByLabel('Follow').uncheck()
  await page.evaluate('lines.scrollTop = 0')
  await storeLines(postgres, first.env, session, 76, 1)
  await until(async () => (await shown(page)).length === 76, 'one more')
  t.equal(await page.evaluate('lines.scrollTop'), 0, 'it stays where the reader is')
  await endByHand(postgres, first.env, session, 'completed')
  await untilText(page.locator('#session-status'), 'completed')
  t.same(await shown(page), upTo(76))
})

await t.test('a memory and the configuration, changed in their place', async (t: Test) => {
  const ops = await startOps(t, postgres)
  await ended(ops)
  const { page } = await browse(t, ops.base, { expectedErrors: [loadFailure(400)] })
  const memories = async (): Promise<readonly Memory[]> =>
    (await ops.api<{ memories: readonly Memory[] }>('GET', '/memories')).json.memories

  await page.goto(`${ops.base}/memories`)
  await page.getByText('New memory…').click()
  await page.getByLabel(/^Service \(/).fill('web')
  await page.locator('#new-category').fill('timing')
  await page.locator('#new-observation').fill('slow <b>mornings</b>')
  await page.getByRole('button', { name: 'Add memory' }).click()
  const card = page.locator('article')
  await untilText(card.locator('.observation'), 'slow <b>mornings</b>')
  await card.getByText('Edit…').click()
  await card.getByLabel('Observation').fill('slow evenings')
  await card.getByLabel(/^Confidence/).fill('0.9')
  await card.getByRole('button', { name: 'Save' }).click()
  await untilText(card.locator('.observation'), 'slow evenings')
  t.match(await memories(), [{ observation: 'slow evenings', confidence: 0.9, active: true }])
  await card.getByText('Edit…').click()
  await card.getByLabel('Observation').fill('   ')
  await card.getByRole('button', { name: 'Save' }).click()
  await untilText(card.locator('.refused'), /Observation is required/)
  page.once('dialog', (dialog) => void dialog.accept())
  await card.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Deleted.').waitFor()
  t.same(await memories(), [])

  await page.goto(`${ops.base}/config`)
  await page.getByLabel(/^Interval/).fill('900')
  await page.getByLabel('Dry run').selectOption('true')
  await page.getByRole('button', { name: 'Save config' }).click()
  await untilText(page.locator('#settings .saved'), /^Saved/)
  t.match((await ops.api('GET', '/config')).json, { interval: 900, dry_run: true })
})
