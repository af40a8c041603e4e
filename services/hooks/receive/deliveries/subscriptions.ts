import type { Provider } from '../../../../db/hooks/receive/providers.ts'
import { Fault, notFound } from '../../../../kernel/fault.ts'
import { parseObject, type JsonObject } from '../../../../kernel/json.ts'
import type { Log } from '../../../../kernel/log.ts'
import type { Outbound } from '../../../../kernel/net/outbound.ts'
import { setTopics, type ProviderTools } from '../providers/providers.ts'
import { confirmationIn, type Confirmation } from '../schemes/fetched.ts'
import { MAX_TOPICS } from '../schemes/form.ts'
import type { Scheme } from '../schemes/scheme.ts'
import { schemeOf } from '../schemes/schemes.ts'

// Subscriptions that a sender asks to be confirmed, such as those of Amazon SNS.

/** Confirms subscriptions; see `openSubscriptions`. */
export type Subscriptions = ReturnType<typeof openSubscriptions>

const TIMEOUT_MS = 10_000

/** `get` fetches the address that confirms a subscription; it stands in a verified message. */
export function openSubscriptions({ get, log }: Pick<Outbound, 'get'> & { log: Log }) {
  const closing = new AbortController()
  const running = new Set<Promise<void>>()

  /** Why the sender did not confirm; undefined once it has. */
  async function confirm({ url }: Confirmation): Promise<string | undefined> {
    const answer = await get({
      url,
      headers: { 'user-agent': 'gatehouse' },
      timeoutMs: TIMEOUT_MS,
      trusted: false,
      answerBytes: 0,
      signal: closing.signal,
    })
    if (answer.kind !== 'answered') return answer.reason
    return answer.status === 200 ? undefined : `it answered ${answer.status}`
  }

  async function confirmAlone(provider: string, asked: Confirmation): Promise<void> {
    const { topic } = asked
    const problem = await confirm(asked)
    if (problem === undefined) log.info('subscription confirmed', { provider, topic })
    else log.warn('subscription not confirmed', { provider, topic, problem })
  }

  return {
    confirm,
    /** Takes a stored message, and confirms a subscription to a topic that the operator named. */
    received(provider: string, scheme: Scheme, members: JsonObject): void {
      const asked = confirmationIn(scheme, members)
      if (asked === undefined || !scheme.expected?.topics?.includes(asked.topic)) return
      const work = confirmAlone(provider, asked).finally(() => running.delete(work))
      running.add(work)
    },
    async close(): Promise<void> {
      closing.abort()
      await Promise.all(running)
    },
  }
}

/** What the stored message of a provider asks to be confirmed; undefined for any other event. */
export function confirmationOf(
  row: Provider | undefined,
  event: { verified: boolean; payload: string },
): Confirmation | undefined {
  const scheme = row && schemeOf(row)
  if (scheme === undefined || !event.verified) return undefined
  return confirmationIn(scheme, parseObject(event.payload) ?? {})
}

/** An event as it is stored. */
interface StoredMessage {
  id: number
  provider: string
  verified: boolean
  payload: Buffer
}

interface ConfirmTools extends ProviderTools {
  registry: { provider: (name: string) => Provider | undefined; refresh: () => Promise<void> }
  subscriptions: Subscriptions
}

const TOO_MANY = `The provider has ${MAX_TOPICS} topics, which is the most; add another provider.`

/**
 * Confirms the subscription that a stored message asks for. Its topic is named first, because
 * events may come before the sender has answered. Throws 404 for an event that asks for nothing,
 * and 502 where the sender does not confirm.
 */
export async function confirmStored(
  tools: ConfirmTools,
  { id, provider, verified, payload }: StoredMessage,
): Promise<Confirmation> {
  const row = tools.registry.provider(provider)
  const asked = confirmationOf(row, { verified, payload: payload.toString('utf8') })
  if (row === undefined || asked === undefined) {
    throw notFound(`There is no event ${id} that asks for a confirmation.`)
  }
  const topics = row.scheme_row?.expected?.topics ?? []
  if (!topics.includes(asked.topic)) {
    if (topics.length >= MAX_TOPICS) throw new Fault(409, 'CONFLICT', TOO_MANY)
    await setTopics(tools, row.name, [...topics, asked.topic])
    await tools.registry.refresh()
  }
  const problem = await tools.subscriptions.confirm(asked)
  if (problem === undefined) return asked
  throw new Fault(502, 'BAD_GATEWAY', `The sender did not confirm the subscription: ${problem}.`)
}
