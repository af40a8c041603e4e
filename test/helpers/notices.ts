import { randomBytes } from 'node:crypto'
import { createMetrics } from '../../kernel/metrics.ts'
import { readAddress } from '../../services/notices/address.ts'
import { beginNotice, endNotice } from '../../services/ops/notices.ts'
import { startNotifier } from '../../services/notices/sender.ts'
import { addTarget, type TargetForm } from '../../services/notices/targets.ts'
import { createSecretBox } from '../../kernel/secret-box.ts'
import type { Level, Site } from '../../db/notices.ts'
import { postgres } from './backends.ts'
import type { Env } from './program.ts'
import type { Owner } from './owner.ts'
import { startReceiver } from './replays.ts'
import { openTimed } from './timed.ts'

/** A notice as a target got it. */
export type Told = {
  key: string
  id: number
  begin_id: number | null
  reminder: number
  level: string
  message: string
  /** `storm`: several, which are in `notices`. */
  kind: string
  notices?: readonly { message: string }[]
  /** What PagerDuty gets instead. */
  event_action?: string
  dedup_key?: string
  /** When it came, by the clock of the test. */
  at: Date
}

/** A part that sends notices, at times and to targets that the test decides. */
export type Notified = Awaited<ReturnType<typeof openNotified>>

/** Starts two instances that send notices to the targets of these paths, as `OPS_NOTIFY_URL`. */
export async function openNotified(t: Owner, paths: readonly string[] = [], began = Date.now()) {
  const timed = await openTimed(t, 'notices', { began })
  const { db, clock, log, later } = timed
  const statuses = new Map<string, number>()
  const taken = new Map<string, Told[]>()
  const { url } = await startReceiver(t, ({ path, headers, body }, response) => {
    const status = statuses.get(path) ?? 200
    if (status === 200) {
      const told: Omit<Told, 'key' | 'at'> = JSON.parse(body.toString())
      const key = String(headers['idempotency-key'])
      taken.set(path, [...(taken.get(path) ?? []), { ...told, key, at: clock.now() }])
    }
    response.writeHead(status).end()
  })
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
  })
  const about = { session: null, service: 'shop' }
  return Object.assign(timed, {
    /** What a target has taken, oldest first. */
    taken: (target: string) => taken.get(target) ?? [],
    /** The messages of these, from one on. */
    messages: (target: string, from = 0) =>
      (taken.get(target) ?? []).slice(from).map(({ message }) => message),
    /** What a target answers from now on: 200 and it takes. */
    answer: (target: string, status: number) => void statuses.set(target, status),
    /** Lets time pass, in steps, at each of which all that is due is sent. */
    async pass(seconds: number, step = 60) {
      for (let passed = 0; passed < seconds; passed += step) {
        later(step)
        for (const notifier of notifiers) {
          await notifier.round()
          await notifier.settled()
        }
      }
    },
    async begin(key: string, level: Level = 'critical') {
      const event = { ...about, level, message: `${key} fails`, now: clock.now() }
      await timed.whole.transaction((tx) => beginNotice(tx, event, key))
    },
    async end(key: string) {
      const event = { ...about, level: 'info', message: `${key} ends`, now: clock.now() } as const
      await timed.whole.transaction((tx) => endNotice(tx, event, key))
    },
    /** Adds a target of the database, at this path; `kind` is the beginning of its address, such as `slack+`. */
    add: (name: string, path: string, form: TargetForm = {}, kind = '') =>
      addTarget({ db, actor: { kind: 'command' }, box: () => box, now: clock.now }, name, {
        ...form,
        url: `${kind}${url}${path}`,
      }),
  })
}

/** Each notice goes at once, as if no other one had come for long: a storm is another test's. */
export async function calm(env: Env) {
  await postgres.query(
    env,
    `create function notices.forget() returns trigger language plpgsql as $$ begin return null; end $$;
     create trigger forget before insert on notices.paces for each row execute function notices.forget()`,
  )
}
