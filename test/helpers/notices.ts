import { randomBytes } from 'node:crypto'
import { openDatabase } from '../../db/open.ts'
import type { Database } from '../../db/client.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { createLog, type Log } from '../../kernel/log.ts'
import { createMetrics } from '../../kernel/metrics.ts'
import type { Clock } from '../../kernel/time.ts'
import { readAddress } from '../../services/notices/address.ts'
import { beginNotice, endNotice } from '../../services/ops/notices.ts'
import { startNotifier } from '../../services/notices/sender.ts'
import { addTarget, type TargetForm } from '../../services/notices/targets.ts'
import { createSecretBox } from '../../kernel/secret-box.ts'
import type { Level, Site } from '../../db/notices.ts'
import { backends, type Backend, type Row } from './backends.ts'
import type { Env } from './program.ts'
import type { Owner } from './owner.ts'
import { startReceiver } from './replays.ts'
import { transcript } from './secrets.ts'

/** A notice as a target got it. */
export type Told = {
  readonly key: string
  readonly id: number
  readonly begin_id: number | null
  readonly reminder: number
  readonly level: string
  readonly message: string
  /** `storm`: several, which are in `notices`. */
  readonly kind: string
  readonly notices?: readonly { readonly message: string }[]
  /** What PagerDuty gets instead. */
  readonly event_action?: string
  readonly dedup_key?: string
  /** When it came, by the clock of the test. */
  readonly at: Date
}

/** A part that sends notices, at times and to targets that the test decides. */
export type Notified = {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  now(): Date
  /** What a target has taken, oldest first. */
  taken(target: string): readonly Told[]
  /** What a target answers from now on: 200 and it takes. */
  answer(target: string, status: number): void
  /** Whether the database is reached. */
  reach(reached: boolean): void
  /** Lets time pass, in steps, at each of which all that is due is sent. */
  pass(seconds: number, step?: number): Promise<void>
  begin(key: string, level?: Level): Promise<void>
  end(key: string): Promise<void>
  /** Adds a target of the database, at this path; `kind` is the beginning of its address, such as `slack+`. */
  add(name: string, path: string, form?: TargetForm, kind?: string): Promise<void>
  query(text: string): Promise<readonly Row[]>
  logged(): string
}

/** Starts two instances that send notices to the targets of these paths, as `OPS_NOTIFY_URL`. */
export async function openNotified(
  t: Owner,
  backend: Backend,
  paths: readonly string[],
  began = Date.now(),
): Promise<Notified> {
  const statuses = new Map<string, number>()
  const taken = new Map<string, Told[]>()
  let forward = 0
  let reached = true
  let logged = ''
  const clock: Clock = {
    now: () => new Date(began + forward),
    elapsed: () => forward,
    // Rounds are made by the test.
    every: () => () => undefined,
  }
  const { url } = await startReceiver(t, ({ path, headers, body }, response) => {
    const status = statuses.get(path) ?? 200
    if (status === 200) {
      const told: Omit<Told, 'key' | 'at'> = JSON.parse(body.toString())
      const key = String(headers['idempotency-key'])
      taken.set(path, [...(taken.get(path) ?? []), { ...told, key, at: clock.now() }])
    }
    response.writeHead(status).end()
  })
  const log = createLog((text) => {
    transcript('log', text, 'notices')
    logged += text
  }, clock.now)
  const env = await backend.env(t)
  const where = { url: env['DATABASE_URL'], dataDirectory: env['GATEHOUSE_DATA_DIR'] ?? '' }
  const opened = await openDatabase(where, log)
  const away = (): Unavailable => new Unavailable('the test keeps the database away')
  const db: Database = {
    ...opened.db,
    run: (...given) => (reached ? opened.db.run(...given) : Promise.reject(away())),
    transaction: (work) => (reached ? opened.db.transaction(work) : Promise.reject(away())),
  }
  const addresses = paths.map((path) => readAddress(`${url}${path}`))
  const box = createSecretBox(Buffer.alloc(32, 1), randomBytes)
  const options = {
    db,
    clock,
    log,
    notifyUrls: () => addresses,
    siteUrl: (site: Site) => `http://${site}`,
    secretBox: () => box,
  }
  const notifiers = [0, 1].map(() => startNotifier({ ...options, metrics: createMetrics() }))
  t.teardown(async () => {
    for (const notifier of notifiers) await notifier.close()
    await opened[Symbol.asyncDispose]()
  })
  const about = { session: null, service: 'shop' }
  return {
    db,
    clock,
    log,
    now: clock.now,
    taken: (target) => taken.get(target) ?? [],
    answer: (target, status) => void statuses.set(target, status),
    reach: (next) => void (reached = next),
    async pass(seconds, step = 60) {
      for (let passed = 0; passed < seconds; passed += step) {
        forward += step * 1_000
        for (const notifier of notifiers) {
          await notifier.round()
          await notifier.settled()
        }
      }
    },
    async begin(key, level = 'critical') {
      const event = { ...about, level, message: `${key} fails`, now: clock.now() }
      await opened.db.transaction((tx) => beginNotice(tx, event, key))
    },
    async end(key) {
      const event = { ...about, level: 'info', message: `${key} ends`, now: clock.now() } as const
      await opened.db.transaction((tx) => endNotice(tx, event, key))
    },
    add: (name, path, form = {}, kind = '') =>
      addTarget(
        { db: opened.db, actor: { kind: 'command' }, box: () => box, now: clock.now },
        name,
        { ...form, url: `${kind}${url}${path}` },
      ),
    query: (text) =>
      opened.db.run({ name: text.slice(0, 60), text }, []) as Promise<readonly Row[]>,
    logged: () => logged,
  }
}

/** Each notice goes at once, as if no other one had come for long: a storm is another test's. */
export async function calm(env: Env): Promise<void> {
  await backends[1].query(
    env,
    `create function notices.forget() returns trigger language plpgsql as $$ begin return null; end $$;
     create trigger forget before insert on notices.paces for each row execute function notices.forget()`,
  )
}
