import { t } from 'tap'
import type { Locator, Page } from 'playwright-core'
import { openForward } from '../fixtures/forward-setup.ts'
import { apiOf } from '../helpers/api.ts'
import { postgres } from '../helpers/backends.ts'
import { addProvider } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { identity, linksServer, makeLink } from '../helpers/links.ts'
import { inventoryFile } from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { browse, textOf } from './pages.ts'

// Ten tasks of a day, each from the first page of its service, by mouse, by fingers on a phone and by keys alone: none
// takes more than six steps. A click, a choice and a word in a field are a step each; so are a key and a run of Tab.

const MOST_STEPS = 6
const MODES = ['mouse', 'fingers', 'keys'] as const
type Mode = (typeof MODES)[number]

const API_KEY = secret('alerts')
const checkOf = (name: Mode) => ({
  name: `shop-${name}`,
  checks: [{ type: 'tcp', name: 'port', host: '127.0.0.1', port: 1, retries: 0 }],
  operations: [
    { name: `restart-${name}`, action_type: 'restart', argv: ['true'], approval: true },
  ],
})
const target = await startReceiver(t)
const env = {
  ...(await postgres.env(t)),
  OPS_INVENTORY: await inventoryFile(t, { services: MODES.map(checkOf) }),
  OPS_CHAT_API_KEY: API_KEY,
  GATEHOUSE_SECRET_KEY: secretKey(),
  GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8',
}
const server = await startServer(t, { env })
const { hooks, ops } = server
const links = linksServer(server, env)

/** A zone in which it is noon: yesterday is the same day for the whole test. */
const offset = 12 - new Date().getUTCHours()
const ZONE = `Etc/GMT${offset > 0 ? '-' : '+'}${Math.abs(offset)}`
const noon = Temporal.Now.zonedDateTimeISO(ZONE).startOfDay()

/** Payments of yesterday: the one that failed at 14:00 is wanted. */
const wanted = await fillHooks()
const admin = await fillLinks()
await fillOps()

async function fillHooks() {
  await addProvider(hooks, 'shop', { open: true })
  let id = 0
  for (const [type, hour] of [
    ['payment.failed', 9],
    ['payment.failed', 14],
    ['payment.paid', 14],
    ['payment.failed', 17],
  ] as const) {
    const at = noon
      .subtract({ hours: 24 - hour })
      .toInstant()
      .toString()
    const [row] = await postgres.query(
      env,
      `insert into hooks.events (provider, event_type, trust, headers, payload, received_at)
       values ('generic:shop', $1, 3, '[]', convert_to($2, 'UTF8'), $3) returning id`,
      [type, JSON.stringify({ type, amount: hour }), at],
    )
    if (type === 'payment.failed' && hour === 14) id = Number(row?.['id'])
  }
  const args = [`${target.url}/hook`, '--name', 'ann-laptop', '--from', hooks]
  await openForward(t, args).connected()
  return id
}

async function fillLinks() {
  const ann = await links.user('ann', { admin: true })
  const carol = await links.user('carol')
  await makeLink(carol, 'pay')
  for (const mode of MODES) {
    const leaver = await links.user(`leaver-${mode}`)
    await makeLink(leaver, `wiki-${mode}`)
  }
  return ann.email
}

async function fillOps() {
  const ends_at = new Date(Date.now() + 3_600_000).toISOString()
  const silence = { match: { service: 'mail' }, ends_at, reason: 'moving the mail server' }
  await apiOf(ops)('POST', '/silences', silence)
  const labels = { alertname: 'QueueLong', service: 'mail' }
  const alert = {
    version: '4',
    status: 'firing',
    groupKey: 'mail',
    commonLabels: labels,
    alerts: [{ status: 'firing', labels, startsAt: new Date().toISOString() }],
  }
  await apiOf(ops, API_KEY)('POST', '/webhook', alert)
  for (const mode of MODES) {
    await postgres.query(
      env,
      `insert into ops.approvals (service, operation, argv, reason, status, created_at, expires_at)
       values ($1, $2, '["true"]', 'It is slow.', 'pending', now(), now() + interval '1 hour')`,
      [`shop-${mode}`, `restart-${mode}`],
    )
  }
  const isChecked = async () => {
    const rows = await postgres.query(env, `select 1 from ops.checks where state = 'fail'`)
    return rows.length === MODES.length
  }
  await until(isChecked, 'the checks to fail', 30_000)
}

/** Somebody at a page, whose steps are counted. */
class Hand {
  steps = 0
  readonly page: Page
  readonly mode: Mode
  constructor(page: Page, mode: Mode) {
    this.page = page
    this.mode = mode
  }

  /** To a page of the navigation. */
  async go(label: string) {
    const entry = this.page.locator(`#navigation a[data-label="${label}"]`)
    if (this.mode === 'keys') {
      // The letter must follow g soon.
      const letter = (await entry.getAttribute('data-key')) ?? ''
      await this.key('g')
      await this.key(letter)
    } else {
      if (this.mode === 'fingers')
        await this.press(this.page.getByRole('button', { name: 'Menu' }))
      await this.press(entry)
    }
    await this.page
      .locator(`#navigation a[data-label="${label}"][aria-current]`)
      .waitFor({ state: 'attached' })
    // Its forms listen from then on.
    await this.page.locator('.htmx-added').waitFor({ state: 'detached' })
  }

  async press(what: Locator) {
    if (this.mode === 'keys') return this.tabAnd(what, 'Enter')
    this.steps++
    await (this.mode === 'fingers' ? what.tap() : what.click())
  }

  /** Sends the form that has the focus: by Enter, or by its button. */
  async submit(name: string) {
    if (this.mode === 'keys') return this.key('Enter')
    await this.press(this.page.getByRole('button', { name }))
  }

  async tick(what: Locator) {
    if (this.mode === 'keys') return this.tabAnd(what, 'Space')
    return this.press(what)
  }

  /** Types into a field; by keys into the one that has the focus, or that Tab leads to. */
  async type(field: Locator, text: string) {
    this.steps++
    if (this.mode !== 'keys') return field.fill(text)
    await field.waitFor()
    if (!(await hasFocus(field))) await this.tabTo(field)
    await this.page.keyboard.type(text)
  }

  async choose(list: Locator, label: string) {
    this.steps++
    await list.selectOption(label)
  }

  async key(key: string) {
    this.steps++
    // Its scripts listen from then on.
    await this.page.waitForLoadState('domcontentloaded')
    await this.page.keyboard.press(key)
  }

  /** By the search of pages, actions and names; the first result is opened. */
  async search(text: string, first: RegExp) {
    await this.key('Control+k')
    await this.type(this.page.locator('#palette input'), text)
    await this.page.locator('#palette-option-0', { hasText: first }).waitFor()
    await this.key('Enter')
    await this.page.locator('#palette input').waitFor({ state: 'hidden' })
  }

  private async tabAnd(what: Locator, key: string) {
    await what.waitFor()
    if (!(await hasFocus(what))) await this.tabTo(what)
    await this.key(key)
  }

  private async tabTo(what: Locator) {
    this.steps++
    for (let presses = 0; presses < 60; presses++) {
      if (await hasFocus(what)) return
      await this.page.keyboard.press('Tab')
    }
    throw new Error(`60 presses of Tab did not reach ${String(what)}`)
  }
}

function hasFocus(what: Locator) {
  return what.evaluate((element: { matches(selector: string): boolean }) =>
    element.matches(':focus'),
  )
}

type Task = {
  readonly name: string
  /** The first page of its service. */
  readonly from: string
  /** By mouse, by fingers and by keys. */
  readonly steps: readonly [number, number, number]
  /** Does it, and waits for the goal. */
  do(hand: Hand): Promise<void>
}

/** A sender for each mode: a name is taken once. */
const SENDERS: Readonly<Record<Mode, string>> = {
  mouse: 'Shopify',
  fingers: 'Linear',
  keys: 'Stripe',
}

const TASKS: readonly Task[] = [
  {
    name: 'add Shopify',
    from: hooks,
    steps: [5, 6, 6],
    async do(hand) {
      const { page, mode } = hand
      const sender = SENDERS[mode]
      if (mode === 'keys') await hand.search(`add ${sender}`, new RegExp(`^Add ${sender}`))
      else {
        await hand.go('Providers')
        await hand.press(page.getByRole('link', { name: 'New provider' }))
        await hand.press(page.getByRole('link', { name: sender, exact: true }))
      }
      await hand.type(page.getByLabel('Secret that the sender made'), secret(`of-${mode}`))
      await hand.submit('Add provider')
      await page.getByText('Waiting for the first delivery…').waitFor()
    },
  },
  {
    name: 'find the failed payment of yesterday 14:00',
    from: hooks,
    steps: [4, 5, 6],
    async do(hand) {
      const { page, mode } = hand
      await hand.go('Log')
      if (mode === 'keys') await hand.key('/')
      await hand.type(page.getByRole('combobox', { name: 'Filters' }), 'failed')
      if (mode !== 'keys') await hand.choose(page.getByLabel('Time', { exact: true }), 'Yesterday')
      const row = page.getByRole('row', { name: /payment\.failed.*yesterday 14:00/ })
      await until(async () => (await page.locator('#log-rows > tr').count()) === 3, 'three rows')
      await hand.press(row.getByRole('link'))
      await page.locator(`[data-event="${wanted}"]`).waitFor()
    },
  },
  {
    name: 'send it again to the laptop',
    from: `${hooks}/log/${wanted}`,
    steps: [2, 2, 4],
    async do(hand) {
      const { page } = hand
      const before = target.received.length
      await hand.press(page.locator('#replay-menu > summary'))
      await hand.press(page.getByRole('button', { name: /ann-laptop/ }))
      await until(() => target.received.length > before, 'the event at the laptop')
      await page.locator('#attempts [data-outcome="delivered"]').first().waitFor()
    },
  },
  {
    name: 'mute a check for the night',
    from: ops,
    steps: [3, 4, 6],
    async do(hand) {
      const { page, mode } = hand
      if (mode === 'keys') {
        await hand.search(`shop-${mode} port`, new RegExp(`shop-${mode}`))
        await page.locator('#check-now').waitFor()
        await hand.key('m')
        await hand.press(page.getByRole('button', { name: '8 hours' }))
      } else {
        await hand.go('Checks')
        const row = page.locator(`#service-shop-${mode} tbody tr`)
        await hand.press(row.locator('summary'))
        await hand.press(row.getByRole('button', { name: '8 hours' }))
      }
      await page
        .locator('.badge', { hasText: /^muted$/ })
        .first()
        .waitFor()
    },
  },
  {
    name: 'see why an alert started nothing',
    from: ops,
    steps: [2, 3, 4],
    async do(hand) {
      const { page } = hand
      await hand.go('Alerts')
      await page.getByText('a silence holds it back').waitFor()
      await hand.press(page.locator('#alert-rows .row-link').first())
      await page.getByText('a silence holds it back: see the silences').waitFor()
    },
  },
  {
    name: 'find who owns go/pay',
    from: `${links.base}/-/`,
    steps: [2, 3, 3],
    async do(hand) {
      const { page, mode } = hand
      if (mode === 'keys') await hand.search('pay', /pay/)
      else {
        await hand.go('All links')
        await hand.type(page.getByRole('searchbox', { name: 'Search' }), 'go/pay')
      }
      await page.locator('main', { hasText: /pay.*carol/s }).waitFor()
    },
  },
  {
    name: "move a leaver's links",
    from: `${links.base}/-/`,
    steps: [4, 5, 6],
    async do(hand) {
      const { page, mode } = hand
      const leaver = `leaver-${mode}@example.com`
      if (mode === 'keys') await hand.search(leaver, new RegExp(leaver))
      else {
        await hand.go('Admin')
        await hand.press(page.getByRole('link', { name: leaver, exact: true }))
      }
      await hand.type(page.getByLabel('Move them to'), 'carol@example.com')
      await hand.submit('Move links')
      await page.locator('#done', { hasText: 'Moved 1 link.' }).waitFor()
      await page.locator(`tr[data-slug="wiki-${mode}"]`, { hasText: 'carol@' }).waitFor()
    },
  },
  {
    name: 'approve a restart',
    from: ops,
    steps: [2, 2, 4],
    async do(hand) {
      const { page, mode } = hand
      await hand.press(page.getByRole('link', { name: /waits? for approval/ }))
      await hand.press(page.getByRole('button', { name: `Approve restart-${mode}` }))
      const row = page.locator('#approval-rows tr', { hasText: `restart-${mode}` })
      await row.getByText('by ann@example.com').waitFor()
    },
  },
  {
    name: "add a job's heartbeat",
    from: ops,
    steps: [5, 6, 6],
    async do(hand) {
      const { page, mode } = hand
      if (mode === 'keys') await hand.search('heartbeat', /^Add a heartbeat/)
      else {
        await hand.go('Checks')
        await hand.press(page.getByRole('link', { name: 'Add a check' }))
        // Its list of types listens from then on.
        await page.waitForURL('**/checks/new')
        await hand.choose(page.getByLabel('Type'), 'heartbeat')
        await page.locator('#check-period').waitFor()
      }
      await hand.type(page.locator('#check-service'), `backup-${mode}`)
      await hand.submit('Add check')
      await page.getByText('Address of the heartbeat').waitFor()
    },
  },
  {
    name: 'put up the status page',
    from: ops,
    steps: [3, 4, 6],
    async do(hand) {
      const { page, mode } = hand
      const name = `shop-${mode}`
      if (mode === 'keys') await hand.search('status page', /status page/)
      else await hand.go('Config')
      await hand.tick(page.getByRole('checkbox', { name }))
      await hand.submit('Save status page')
      await page.locator('#done', { hasText: 'Saved the status page.' }).waitFor()
      const { status, text } = await request(`${ops}/status`)
      if (status !== 200 || !text.includes(name)) throw new Error(`no status page of ${name}`)
    },
  },
]

for (const [at, mode] of MODES.entries()) {
  await t.test(`by ${mode}`, async (t) => {
    const phone = { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true }
    const { page, secretShown } = await browse(t, hooks, {
      origins: [hooks, links.base, ops],
      timezoneId: ZONE,
      extraHTTPHeaders: identity(admin),
      ...(mode === 'fingers' ? phone : { viewport: { width: 1280, height: 800 } }),
    })
    for (const task of TASKS) {
      await page.goto(task.from)
      const hand = new Hand(page, mode)
      // The address of a heartbeat is a secret.
      await secretShown(() => task.do(hand))
      t.equal(hand.steps, task.steps[at], task.name)
      t.ok(hand.steps <= MOST_STEPS, `${task.name}: at most ${MOST_STEPS} steps`)
    }
    t.notMatch(await textOf(page.locator('#problem')), /./)
  })
}
