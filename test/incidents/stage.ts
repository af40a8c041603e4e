import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../db/client.ts'
import { migrate } from '../../db/migrate.ts'
import { openDatabase, type DatabaseOptions } from '../../db/open.ts'
import type { Level } from '../../db/notices.ts'
import {
  sessionQueries as q,
  type FoundSession,
  type Line,
  type Session,
} from '../../db/ops/agent/sessions.ts'
import { parseObject } from '../../kernel/json.ts'
import { createLog } from '../../kernel/log.ts'
import { findProgram } from '../../kernel/processes/find-program.ts'
import { runCommand } from '../../kernel/processes/run.ts'
import { holderOf, machineId } from '../../kernel/processes/proc.ts'
import { systemClock } from '../../kernel/time.ts'
import { openRunningConfig } from '../../services/ops/config.ts'
import { levelOf } from '../../services/ops/events.ts'
import { createRedact } from '../../services/ops/redact.ts'
import { openPrices } from '../../services/ops/agent/runners/budget.ts'
import type { Endpoint } from '../../services/ops/agent/runners/model-chat.ts'
import { createModelRunner } from '../../services/ops/agent/runners/model.ts'
import { openSessions } from '../../services/ops/agent/sessions/sessions.ts'
import type { Sandbox } from '../../services/ops/agent/tools/sandbox.ts'
import type { Owner } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'
import { placed, type NamedIncident } from './incident.ts'
import type { Answered } from './judge.ts'
import { setUpHost, type MadeUpHost } from './made-up-host.ts'
import { seed } from './seed.ts'

/** What incidents are played with. */
type StageOptions = {
  database: Pick<DatabaseOptions, 'url' | 'dataDirectory'>
  /** Where the made-up host and the output of sessions are. */
  folder: string
  endpoint: Endpoint
  model: string
  maxTurns: number
  /** A price table, as `OPS_PRICES` names one. */
  prices?: string | undefined
  /** Takes what is logged. */
  log: (text: string) => void
}

/** An incident that was played. */
export type Played = Answered & {
  status: string
  turns: number
  tokens: number
  /** US dollars; null without a price. */
  cost: number | null
  seconds: number
}

/** Plays incidents, one after the other. */
export type Stage = Awaited<ReturnType<typeof openStage>>

/** The longest run of a chain of sessions. */
const MAX_CHAIN_MS = 3_600_000
const MAX_PAUSE_MS = 100
const MAX_LINES = 20_000
/** Tools whose arguments people read. */
const SAYING = /^(record_event|remember|escalate) (\{.*\})$/s

/**
 * Opens sessions with the runner for models, on a host that each incident makes up. Only programs
 * of that host are run, and only its files and pages are read.
 */
export async function openStage(t: Owner, options: StageOptions) {
  const log = createLog(options.log, systemClock.now)
  const { db, [Symbol.asyncDispose]: close } = await openDatabase(options.database, log)
  t.teardown(close)
  await migrate(db)
  const folder = (name: string) => join(options.folder, name)
  for (const name of ['host', 'results']) mkdirSync(folder(name), { recursive: true })
  let host: MadeUpHost | undefined
  let pages: NamedIncident['pages'] = {}
  const { url: page } = await startReceiver(t, ({ path }, response) => {
    const [status, body] = pages?.[path.split('?')[0] ?? ''] ?? [404, 'not found\n']
    response.writeHead(status, { 'content-type': 'text/plain' }).end(body)
  })
  const { model } = options
  const models = { tier1_model: model, tier2_model: model, tier3_model: model }
  const config = await openRunningConfig(db, systemClock, log, () => ({
    ...models,
    state_dir: folder('state'),
    results_dir: folder('results'),
    repos_dir: folder('host/files'),
    interval: 3_600,
    dry_run: false,
    max_tier: 3,
  }))
  t.teardown(config.close)
  const key = options.endpoint.key === undefined ? [] : [options.endpoint.key]
  const shared = { db, clock: systemClock, log, redact: createRedact(() => key) }
  const runner = createModelRunner({
    ...shared,
    sandbox: sandboxOf(() => host?.bin ?? ''),
    inventory: { current: async () => host?.inventory ?? { services: [] }, isOurs: () => false },
    runbooks: { current: async () => [] },
    dryRun: async () => false,
    budgets: () => ({ session: undefined, day: undefined }),
    maxTurns: () => options.maxTurns,
    host: async () => host?.facts,
    random: randomBytes,
    endpoint: () => options.endpoint,
    loadingMs: () => 120_000,
    prices: await openPrices(() => options.prices, log),
  })
  const sessions = await openSessions({
    ...shared,
    config,
    resultsDir: folder('results'),
    runner: () => runner,
    holder: holderOf(),
    machine: machineId(),
    random: randomBytes,
    patience: { firstMs: () => 120_000, idleMs: () => 300_000 },
  })
  t.teardown(sessions.close)

  return {
    /** The address of the host's web server. */
    page,
    async play(recorded: NamedIncident) {
      const now = systemClock.now()
      const incident = placed(recorded, now, page)
      pages = incident.pages
      host = setUpHost(folder('host'), incident, page)
      await seed(db, incident, now)
      const { tier = 2, asks, alert } = incident
      const prompt = [asks ?? alert ?? '', placesOf(incident, page)].join('\n\n').trim()
      const trigger = alert === undefined ? 'manual' : 'alert'
      const started = performance.now()
      const session = await sessions.start({ tier, trigger, prompt })
      if (session === undefined) throw new Error('another session runs')
      const isOver = async () => (await q.findRunning(db, {})) === undefined
      await until(isOver, `the end of ${incident.name}`, MAX_CHAIN_MS, MAX_PAUSE_MS)
      const seconds = (performance.now() - started) / 1_000
      return { ...(await readChain(db, session.id)), ran: host.ran(), seconds }
    },
  }
}

/** Where files and pages of the host are on this machine. */
function placesOf({ files = {}, pages = {} }: NamedIncident, page: string): string {
  const [file] = Object.keys(files)
  const places: string[] = []
  if (file !== undefined) {
    const there = file.replace('/', '')
    places.push(`Files of the host are in the repositories: ${file} is ${there} there.`)
  }
  if (Object.keys(pages).length > 0) places.push(`Its web server is ${page}.`)
  return places.join('\n')
}

/** Runs programs of the made-up host, and no others. */
function sandboxOf(bin: () => string): Sandbox {
  return {
    prepare: async () => ({ kind: 'works' }),
    async run([name = '', ...args], { marker, signal }) {
      const file = findProgram(name.split('/').at(-1) ?? '', bin())
      if (file !== undefined) {
        return runCommand([file, ...args], { timeoutMs: 60_000, marker, signal })
      }
      const problem = `it was not found: ${name}`
      return { code: null, output: '', isCut: false, problem, missing: 'absent' }
    },
  }
}

/** What a session and those that it escalated to came to. */
async function readChain(db: Database, first: number): Promise<Omit<Played, 'ran' | 'seconds'>> {
  const chain: FoundSession[] = []
  const lines: Line[] = []
  for (let id: number | undefined = first; id !== undefined;) {
    const session: FoundSession | undefined = await q.findSession(db, { id })
    if (session === undefined) throw new Error(`session ${id} is gone`)
    chain.push(session)
    lines.push(...(await q.listLines(db, { session: id, after: 0, limit: MAX_LINES })))
    const [next]: readonly Session[] = await q.listChildren(db, { id, limit: 1 })
    id = next?.id
  }
  const last = chain.at(-1)
  const told = lines.flatMap(({ kind, text }) => (kind === 'tool' ? saidIn(text) : []))
  const costs = chain.map(({ cost_usd }) => cost_usd)
  return {
    status: last?.status ?? '',
    problem: last?.status === 'completed' ? undefined : lines.findLast(isError)?.text.trim(),
    said: [...told.map(({ text }) => text), last?.summary ?? ''].join('\n'),
    levels: told.flatMap(({ level }) => (level === undefined ? [] : [level])),
    turns: chain.reduce((sum, { num_turns }) => sum + (num_turns ?? 0), 0),
    tokens: lines.reduce((sum, line) => sum + tokensOf(line), 0),
    cost: costs.includes(null) ? null : costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0),
  }
}

function isError({ kind }: Line): boolean {
  return kind === 'error' || kind === 'system'
}

/** What a call of a tool says to people. */
function saidIn(line: string): readonly { text: string; level?: Level }[] {
  const [, name, written = ''] = SAYING.exec(line.trim()) ?? []
  const args = parseObject(written)
  if (args === undefined) return []
  const text = Object.values(args).join('\n')
  return name === 'record_event' ? [{ text, level: levelOf(String(args['level'])) }] : [{ text }]
}

function tokensOf({ kind, text }: Line): number {
  const [, count = '0'] = (kind === 'turn' && /([\d,]+) tokens/.exec(text)) || []
  return Number(count.replaceAll(',', ''))
}
