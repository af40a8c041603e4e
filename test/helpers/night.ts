import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../../db/client.ts'
import { openDatabase } from '../../db/open.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { createLog } from '../../kernel/log.ts'
import { createMetrics } from '../../kernel/metrics.ts'
import type { Clock } from '../../kernel/time.ts'
import { readAddress } from '../../services/notices/address.ts'
import { decideApproval } from '../../services/ops/approvals/approvals.ts'
import { openCheckRegistry } from '../../services/ops/checks/registry.ts'
import type { Service } from '../../services/ops/inventory/inventory.ts'
import { openOps } from '../../services/ops/open.ts'
import { createRedact } from '../../services/ops/redact.ts'
import { openPrices } from '../../services/ops/runners/budget.ts'
import { createModelRunner } from '../../services/ops/runners/model.ts'
import { openSandbox } from '../../services/ops/tools/sandbox.ts'
import { backends, type Row } from './backends.ts'
import { MODEL_KEY, startModel, type Model } from './model.ts'
import { temporaryFolder, type Owner } from './owner.ts'
import { startReceiver } from './replays.ts'
import { transcript } from './secrets.ts'

/** A notice as a target took it. */
export type Taken = { readonly key: string; readonly kind: string; readonly message: string }

/** The whole ops service at a time that the test decides, with all that it depends on. */
export type Night = {
  readonly model: Model
  /** What the checked service answers from now on; undefined: it refuses connections. */
  shop(status: number | undefined): void
  /** Whether the database is reached. */
  reach(reached: boolean): void
  /** What a target of notices answers from now on. */
  target(path: string, status: number): void
  taken(path: string): readonly Taken[]
  /** Lets time pass, in steps, at each of which all that is due is done. */
  pass(seconds: number, step?: number): Promise<void>
  /** Lets time pass while a session runs that does not end by itself. */
  passWhileRunning(seconds: number, step?: number): Promise<void>
  decide(id: number, decision: 'approve' | 'reject'): Promise<unknown>
  /** What operations have done: a line each. */
  ran(): readonly string[]
  query(text: string): Promise<readonly Row[]>
  logged(): string
}

const [, postgres] = backends
/** Nothing is due any more when this many looks in a row found nothing at work. */
const QUIET_LOOKS = 3

/** A clock that stands still until the test moves it, and then calls what is due. */
function createSimulatedClock() {
  const began = Date.now()
  let forward = 0
  const timers = new Set<{ ms: number; next: number; callback: () => void }>()
  const clock: Clock = {
    now: () => new Date(began + forward),
    elapsed: () => forward,
    every(ms, callback) {
      const timer = { ms, next: forward + ms, callback }
      timers.add(timer)
      return () => timers.delete(timer)
    },
  }
  return {
    clock,
    /** Each timer is called once, however often it was due. */
    advance(seconds: number): void {
      forward += seconds * 1_000
      for (const timer of [...timers].filter(({ next }) => next <= forward)) {
        timer.next = forward + timer.ms
        timer.callback()
      }
    },
  }
}

/** Opens the service on PostgreSQL. `servicesOf` has the inventory, whose operations append to a file. */
export async function openNight(
  t: Owner,
  paths: readonly string[],
  servicesOf: (shop: string, writes: (line: string) => readonly string[]) => readonly Service[],
): Promise<Night> {
  const { clock, advance } = createSimulatedClock()
  const model = await startModel(t)
  const folder = await temporaryFolder(t, 'night')
  const file = join(folder, 'ran.txt')
  let logged = ''
  const log = createLog((text) => {
    transcript('log', text, 'night')
    logged += text
  }, clock.now)
  const env = await postgres.env(t)
  const opened = await openDatabase({ url: env['DATABASE_URL'], dataDirectory: '' }, log)
  let reached = true
  let atWork = 0
  async function counted<T>(work: () => Promise<T>): Promise<T> {
    if (!reached) throw new Unavailable('the test keeps the database away')
    atWork++
    try {
      return await work()
    } finally {
      atWork--
    }
  }
  const db: Database = {
    ...opened.db,
    run: (...given) => counted(() => opened.db.run(...given)),
    transaction: (work) => counted(() => opened.db.transaction(work)),
  }
  const targets = await startTargets(t)
  let status: number | undefined = 200
  const shop = await startReceiver(t, (_, response) => {
    if (status === undefined) response.destroy()
    else response.writeHead(status).end()
  })
  const services = servicesOf(shop.url, (line) => {
    return ['sh', '-c', 'echo "$2" >> "$1"', 'sh', file, line]
  })
  const inventory = { current: async () => ({ services: [...services] }), isOurs: () => false }
  const redact = createRedact(() => [MODEL_KEY])
  const prices = await openPrices(() => undefined, log)
  const url = model.env['OPS_MODEL_URL'] ?? ''
  const runner = createModelRunner({
    ...{ db, clock, log, redact, inventory, prices, random: randomBytes },
    sandbox: openSandbox({ log, unsandboxed: () => false, hidden: () => [] }),
    runbooks: { current: async () => [] },
    dryRun: async () => false,
    budgets: () => ({ session: undefined, day: undefined }),
    maxTurns: () => 20,
    host: async () => undefined,
    endpoint: () => ({ url, key: MODEL_KEY }),
    loadingMs: () => 0,
  })
  const models = { tier1_model: 'a', tier2_model: 'b', tier3_model: 'c' }
  const ops = await openOps({
    ...{ db, clock, log, inventory, random: randomBytes, metrics: createMetrics() },
    // The schedule goes by the clock of the database, which the test can't move: it has no part here.
    configured: () => ({
      ...{ ...models, interval: 30 * 86_400, dry_run: false, max_tier: 3 },
      ...{ state_dir: folder, results_dir: folder, repos_dir: folder },
    }),
    patience: { firstMs: () => 60_000, idleMs: () => 180_000 },
    secrets: () => [MODEL_KEY],
    ...{ box: () => undefined, secretBox: () => undefined },
    registry: await openCheckRegistry({ db, clock, log, box: () => undefined }),
    keptDays: () => ({ sessions: 90, lines: 30 }),
    dryRun: async () => false,
    runner: () => runner,
    synthesis: async () => ({
      ...{ model: 'a', endpoint: undefined, price: undefined, dayBudget: undefined },
      ...{ systemPrompt: undefined, fallback: false },
    }),
    alertMaxTier: () => 3,
    alertRules: () => ({ hold: 0, dedup: 0, queue: false }),
    investigateCooldownS: () => 600,
    dayBudget: () => undefined,
    notifyUrls: () => paths.map((path) => readAddress(`${targets.url}${path}`)),
    siteUrl: () => 'http://ops',
    statusServices: () => undefined,
    heartbeatUrl: () => undefined,
    freeSpace: () => undefined,
  })
  t.teardown(async () => {
    reached = true
    await ops.close()
    await opened[Symbol.asyncDispose]()
  })
  const query = (text: string): Promise<readonly Row[]> =>
    opened.db.run({ name: text.slice(0, 60), text }, []) as Promise<readonly Row[]>

  async function isRunning(): Promise<boolean> {
    const [row] = await query(
      `select exists (select from ops.sessions where status = 'running')
           or exists (select from ops.approvals where status in ('approved', 'running')) as runs`,
    )
    return row?.['runs'] === true
  }
  /** Waits until all that was begun is done. */
  async function settle(waitsForSessions: boolean): Promise<void> {
    for (let quiet = 0; quiet < QUIET_LOOKS;) {
      await pause(1)
      const isBusy = atWork > 0 || targets.open() > 0
      if (isBusy || (waitsForSessions && reached && (await isRunning()))) quiet = 0
      else quiet++
    }
  }
  async function pass(seconds: number, step: number, waitsForSessions: boolean): Promise<void> {
    for (let passed = 0; passed < seconds; passed += step) {
      advance(step)
      await settle(waitsForSessions)
    }
  }
  ops.begin()
  await settle(true)
  return {
    ...{ model, query },
    shop: (next) => void (status = next),
    reach: (next) => void (reached = next),
    target: targets.answer,
    taken: targets.taken,
    pass: (seconds, step = 60) => pass(seconds, step, true),
    passWhileRunning: (seconds, step = 30) => pass(seconds, step, false),
    decide: (id, decision) =>
      decideApproval({ db, actor: { kind: 'operator' } }, id, decision, clock.now()),
    ran: () => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []),
    logged: () => logged,
  }
}

/** Targets of notices that answer as the test says. */
async function startTargets(t: Owner) {
  const statuses = new Map<string, number>()
  const taken = new Map<string, Taken[]>()
  let open = 0
  const { url } = await startReceiver(t, ({ path, headers, body }, response) => {
    open++
    response.on('close', () => open--)
    const status = statuses.get(path) ?? 200
    if (status === 200) {
      const { kind, message } = JSON.parse(body.toString()) as Taken
      const key = String(headers['idempotency-key'])
      taken.set(path, [...(taken.get(path) ?? []), { key, kind, message }])
    }
    response.writeHead(status).end()
  })
  return {
    url,
    open: () => open,
    answer: (path: string, status: number) => void statuses.set(path, status),
    taken: (path: string): readonly Taken[] => taken.get(path) ?? [],
  }
}
