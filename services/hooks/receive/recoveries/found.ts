import { notFound } from '../../../../kernel/fault.ts'
import { receiverPath } from '../providers/providers.ts'

/** Where senders reach us: the public address, and the enabled providers behind it. */
export interface Receivers {
  baseUrl: string
  providers: readonly string[]
}

/** What is looked for at a sender. */
export interface Search {
  receivers: Receivers
  since: Date
  /** Finds, and asks for nothing. */
  isDryRun: boolean
  /** A delivery that was refused here this often (4xx) is not asked for again. */
  maxRefusals: number
}

/** A delivery that failed at its sender, and what becomes of it. */
export interface FailedDelivery {
  provider: string
  /** The delivery id. */
  id: string
  type: string
  /** When it failed first, as the sender says it. */
  at: string
  /** What the sender says of the newest attempt. */
  status: string
  /** `redelivered`: it was delivered since. */
  outcome: 'redelivered' | 'asked for' | 'not asked for'
}

/** What was found at a sender. */
export interface Found {
  /** The providers that it delivers to. */
  providers: readonly string[]
  deliveries: readonly FailedDelivery[]
  /** Why not all was done; null where it was. */
  problem: string | null
  /** How long the sender asks to wait. */
  waitMs: number
  /** What a person can do, a line each. */
  advice: readonly string[]
}

/** The provider to which a sender's URL leads. A token may follow its path. */
export function providerAt(
  text: string | undefined,
  { baseUrl, providers }: Receivers,
): string | undefined {
  const url = URL.parse(text ?? '')
  if (url === null || url.origin !== URL.parse(baseUrl)?.origin) return undefined
  return providers.find((name) => {
    const path = receiverPath(name)
    return url.pathname === path || url.pathname.startsWith(`${path}/`)
  })
}

/** Throws where no webhook of a sender leads here. */
export function refuseNone(
  found: readonly unknown[],
  where: string,
  { baseUrl }: Receivers,
): void {
  if (found.length > 0) return
  const address = baseUrl === '' ? '' : ` at ${baseUrl}`
  const advice = 'HOOKS_BASE_URL must be the address that it has there'
  throw notFound(`no webhook of ${where} leads to an enabled provider${address}: ${advice}`)
}
