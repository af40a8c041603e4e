import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { beginByHand, storeLines } from '../helpers/ops-lines.ts'
import { ended, startGate, startOps } from '../helpers/ops-setup.ts'
import type { Memory } from '../helpers/ops-setup.ts'
import { until } from '../helpers/until.ts'
import { browse, loadFailure, textOf } from '../browser/pages.ts'

const postgres = backends[1]
const LONG = 'x'.repeat(180)
const PATHS = ['/', '/sessions', '/events', '/memories', '/cooldowns', '/alerts', '/config']

function measure<T = readonly string[]>(page: Page, call: string): Promise<T> {
  return page.evaluate<T>(`inPage.${call}`)
}

await t.test('every page of ops: widths, colours, names, keyboard', async (t: Test) => {
  const ops = await startOps(t, postgres)
  await ended(ops)
  const { page, context } = await browse(t, ops.base, { expectedErrors: [loadFailure(404)] })
  await context.addInitScript({ path: join(import.meta.dirname, '..', 'browser', 'in-page.js') })
  await ops.api('POST', '/memories', {
    category: LONG.slice(0, 90),
    observation: LONG,
    service: LONG,
  })
  await ops.api('POST', '/memories', { category: 'timing', observation: 'slow', active: false })
  await postgres.query(
    ops.env,
    `with action as (insert into ops.actions (service, action_type, operation, at) values ($1, 'restart', 'o', now())),
          alert as (insert into ops.alerts (fingerprint, source, content, first_seen, last_seen, outcome, problem)
                    values ('f', 'grafana', 'c', now(), now(), 'failed', $1) returning id),
          texts as (insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
                    select id, content, $1, $1, now(), now() from alert, (values ('c'), ('d')) as t(content)),
          gone as (update ops.sessions set summary = 'Two of three checks failed.', cost_usd = 0.0123, prompt_text = $1)
     insert into ops.events (level, service, message, created_at)
     select level, $1, $1, now() from unnest(array['info', 'warning', 'critical']) as level`,
    [LONG],
  )
  const session = await beginByHand(postgres, ops.env, LONG)
  await storeLines(postgres, ops.env, session, 1, 60, { text: LONG })
  const all = [
    ...PATHS,
    '/alerts/1',
    '/sessions/1',
    `/sessions/${session}`,
    '/events?level=info',
    '/nothing',
  ]
  for (const [at, path] of all.entries()) {
    await t.test(path, async (t) => {
      await page.emulateMedia({ colorScheme: at % 2 === 0 ? 'light' : 'dark' })
      await page.goto(ops.base + path)
      t.same(await measure(page, 'structure()'), [])
      await measure(page, 'openDetails()')
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 800 })
        t.same(await measure(page, 'tooWide()'), [], `no sideways scroll at ${width} px`)
        t.same(await measure(page, 'smallTargets(40)'), [], `high enough at ${width} px`)
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          const what = `contrast at ${width}, ${colorScheme}`
          t.same(await measure(page, 'lowContrast(4.5)'), [], what)
        }
      }
      await page.locator('main').focus()
      const faults: string[] = []
      for (let presses = 0; presses < 150; presses++) {
        const fault = await measure<string | null>(page, 'visit()')
        if (fault === null) break
        if (fault !== '' && presses > 0) faults.push(fault)
        await page.keyboard.press('Tab')
      }
      t.same(faults, [], 'the focus shows')
    })
  }
})

await t.test(
  'without script: triggered, seen, stopped, remembered, configured',
  async (t: Test) => {
    const gate = await startGate(t)
    const ops = await startOps(t, postgres, { OPS_INVENTORY: gate.inventory })
    gate.open(true)
    await ended(ops)
    gate.shut()
    const { page } = await browse(t, ops.base, {
      javaScriptEnabled: false,
      expectedErrors: [400, 409].map(loadFailure),
    })
    const whole = async (what: string): Promise<void> => {
      t.ok(await page.locator('header nav').isVisible(), `${what}: a whole page`)
      t.equal(await page.locator('h1').count(), 1, `${what}: with its heading`)
      t.equal(await page.locator('.js-only:visible').count(), 0, `${what}: nothing for script`)
    }
    await page.goto(`${ops.base}/`)
    await page.getByLabel('What to look into').fill('look')
    await page.getByRole('button', { name: 'Start session' }).click()
    await page.waitForURL(/\/sessions\/\d+$/)
    await whole('started')
    await until(async () => {
      await page.reload()
      return (await page.locator('.line').count()) > 0
    }, 'its first line')
    const here = page.url()
    await page.goto(`${ops.base}/`)
    await page.getByLabel('What to look into').fill('another')
    await page.getByRole('button', { name: 'Start session' }).click()
    t.match(await textOf(page.locator('#trigger-refused')), /A session is running/)
    await whole('refused')
    await page.goto(here)
    await page.getByRole('button', { name: /^Stop/ }).click()
    await until(async () => {
      await page.goto(here)
      return (await textOf(page.locator('#session-status'))) === 'stopped'
    }, 'the end')
    gate.open(true)
    await page.goto(`${ops.base}/memories`)
    await page.getByText('New memory…').click()
    await page.locator('#new-category').fill('timing')
    await page.locator('#new-observation').fill('slow')
    await page.getByRole('button', { name: 'Add memory' }).click()
    await whole('added')
    const { json } = await ops.api<{ memories: readonly Memory[] }>('GET', '/memories')
    const own = json.memories.find(({ tier }) => tier === 0)
    const card = page.locator(`#memory-${own?.id}`)
    await card.getByText('Edit…').click()
    await card.getByRole('button', { name: 'Delete' }).click()
    await whole('deleted')
    t.equal(await card.count(), 0)
    await page.goto(`${ops.base}/config`)
    await page.getByLabel(/^Interval/).fill('1200')
    await page.getByRole('button', { name: 'Save config' }).click()
    t.match(await textOf(page.locator('#settings .saved')), /^Saved/)
    await whole('saved')
  },
)
