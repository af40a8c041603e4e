import * as Type from '../../../../kernel/schema.ts'
import { Fault } from '../../../../kernel/fault.ts'
import { pause } from '../../../../kernel/time.ts'
import { cutBytes } from '../../../../kernel/text.ts'
import { linkedPages, postEmpty, type SenderApi } from './api.ts'
import {
  providerAt,
  refuseNone,
  type FailedDelivery,
  type Found,
  type Receivers,
  type Search,
} from './found.ts'

// What GitHub documents at https://docs.github.com/en/rest/repos/webhooks and …/rest/orgs/webhooks.

/** An id is a text where a number can't hold it. */
const Id = Type.Union([Type.Integer(), Type.String({ pattern: '^\\d{1,19}$' })])

const Hooks = Type.Array(
  Type.Object({ id: Id, config: Type.Object({ url: Type.Optional(Type.String()) }) }),
)

const Attempt = Type.Object({
  id: Id,
  /** The same in each attempt: the delivery id. */
  guid: Type.String({ maxLength: 200 }),
  delivered_at: Type.String({ maxLength: 100 }),
  status: Type.String(),
  status_code: Type.Integer(),
  event: Type.String({ maxLength: 200 }),
})
type Attempt = Type.Static<typeof Attempt>
const Attempts = Type.Array(Attempt)

/** A webhook that leads here. */
interface OwnHook {
  provider: string
  path: string
}

/** 1,000 webhooks. */
const MAX_HOOK_PAGES = 10
/** Of a webhook: 10,000 attempts. */
const MAX_PAGES = 100
/** Bytes of the text that says how an attempt went. */
const MAX_STATUS = 200
/** What GitHub asks for between requests that change something. */
const PAUSE_MS = 1_000

/**
 * Looks at the webhooks of a repository or an organization that lead here. Finds what they failed to
 * deliver, and asks for it again. An attempt that succeeded later counts for its delivery.
 */
export async function recoverFromGithub(
  api: SenderApi,
  target: string,
  search: Search,
): Promise<Found> {
  const owner = target.includes('/') ? `/repos/${target}` : `/orgs/${target}`
  const hooks = await listHooks(api, `${owner}/hooks`, search.receivers)
  refuseNone(hooks, target, search.receivers)
  const problems: string[] = []
  const failed: Failed[] = []
  for (const hook of hooks) {
    const { attempts, isWhole } = await listAttempts(api, hook, search.since)
    if (!isWhole) {
      problems.push(`only the newest ${attempts.length} attempts of ${hook.provider} were read`)
    }
    failed.push(...failedDeliveries(hook, attempts))
  }
  const problem = search.isDryRun ? undefined : await askAll(api, failed, search)
  if (problem !== undefined) problems.push(problem.message)
  return {
    providers: hooks.map(({ provider }) => provider),
    deliveries: failed.map(({ delivery }) => delivery),
    problem: problems.length === 0 ? null : problems.join('; '),
    waitMs: Number(problem?.headers['retry-after'] ?? 0) * 1_000,
    advice: [],
  }
}

async function listHooks(
  api: SenderApi,
  path: string,
  receivers: Receivers,
): Promise<readonly OwnHook[]> {
  const own: OwnHook[] = []
  for await (const { value } of linkedPages(api, Hooks, path, MAX_HOOK_PAGES)) {
    for (const { id, config } of value) {
      const provider = providerAt(config.url, receivers)
      if (provider !== undefined) own.push({ provider, path: `${path}/${id}` })
    }
  }
  return own
}

/** The attempts of a webhook since a time, newest first. */
async function listAttempts(api: SenderApi, { path }: OwnHook, since: Date) {
  const attempts: Attempt[] = []
  for await (const page of linkedPages(api, Attempts, `${path}/deliveries`, MAX_PAGES)) {
    const recent = page.value.filter((attempt) => new Date(attempt.delivered_at) >= since)
    // The fields that are used: what else an answer has is not kept.
    for (const { id, guid, delivered_at, status, status_code, event } of recent) {
      const kept = { id, guid, delivered_at, status: cutBytes(status, MAX_STATUS), status_code }
      attempts.push({ ...kept, event })
    }
    if (page.isLast || recent.length < page.value.length) return { attempts, isWhole: true }
  }
  return { attempts, isWhole: false }
}

/** A delivery that failed at least once, and how to ask for it. */
interface Failed {
  delivery: FailedDelivery
  path: string
  refusals: number
}

/** Deliveries with an attempt that failed, in the order in which they failed first. */
function failedDeliveries({ provider, path }: OwnHook, attempts: readonly Attempt[]) {
  const byGuid = Map.groupBy(attempts, ({ guid }) => guid)
  const failed: Failed[] = []
  for (const [guid, [newest, ...older]] of byGuid) {
    if (newest === undefined) continue
    const all = [newest, ...older]
    const first = all.at(-1) ?? newest
    if (all.every(hasSucceeded)) continue
    const delivery: FailedDelivery = {
      provider,
      id: guid,
      type: newest.event,
      at: first.delivered_at,
      status: `${newest.status_code} ${newest.status}`,
      outcome: all.some(hasSucceeded) ? 'redelivered' : 'not asked for',
    }
    const attempt = `${path}/deliveries/${newest.id}/attempts`
    failed.push({ delivery, path: attempt, refusals: all.filter(wasRefused).length })
  }
  const time = ({ delivery }: Failed) => new Date(delivery.at).getTime()
  return failed.toReversed().toSorted((a, b) => time(a) - time(b))
}

/** GitHub documents the status "OK"; a code of success counts, whatever its text is. */
function hasSucceeded({ status, status_code: code }: Attempt): boolean {
  return status === 'OK' || (code >= 200 && code < 300)
}

/** Whether the receiver refused it, and not something on the way. */
function wasRefused({ status_code: code }: Attempt): boolean {
  return code >= 400 && code < 500
}

/** Asks for each redelivery in turn. Gives why it has left off, if it has. */
async function askAll(
  api: SenderApi,
  failed: readonly Failed[],
  { maxRefusals }: Search,
): Promise<Fault | undefined> {
  let isFirst = true
  for (const { delivery, path, refusals } of failed) {
    if (delivery.outcome === 'redelivered' || refusals >= maxRefusals) continue
    if (!isFirst) await pause(PAUSE_MS, api.signal)
    isFirst = false
    try {
      await postEmpty(api, path)
      delivery.outcome = 'asked for'
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      // One that is too old or gone; any other failure is that of all.
      if (![400, 404, 422].includes(error.status)) return error
    }
  }
  return undefined
}
