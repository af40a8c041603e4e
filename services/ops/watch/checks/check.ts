import { isIPv6 } from 'node:net'
import * as Type from '../../../../kernel/schema.ts'
import type { Static, TLiteral, TObject, TProperties } from '../../../../kernel/schema.ts'
import type { Beat, State } from '../../../../db/ops/watch/checks.ts'
import { Level } from '../../../../db/notices.ts'
import { parseDuration } from '../../../../kernel/time.ts'
import type { Redaction } from '../../redact.ts'
import { RunbookName } from '../runbooks/runbooks.ts'

/** The result of a check, in one line for people. */
export interface Finding {
  state: State
  message: string
  /** How long the answer took, if the check knows better than a clock around it. */
  ms?: number
}

/** What a check runs with. */
export interface CheckContext {
  signal: AbortSignal
  timeoutMs: number
  /** Marks the processes of the session. */
  marker: string | undefined
  /** Removes secrets from what programs and errors say. */
  redact: Redaction
  /** What the job of a heartbeat last said. */
  beat: () => Promise<Beat | undefined>
  /** Since when this process takes calls of jobs: it began then, or went on after a suspension. */
  listensSince: Date
  now: () => Date
}

/** Whether a failure starts a session: no, at tier 1, or at this tier. */
export type Investigate = boolean | 1 | 2 | 3
export const Investigate = Type.Unsafe<Investigate>({
  enum: [true, false, 1, 2, 3],
  description: 'whether a failure starts a session: true, false, or its tier',
})

/** What every check may have. */
const COMMON = {
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  timeout_s: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 60 })),
  /** How often it runs: seconds, or a duration such as `5m`. */
  every: Type.Optional(Type.Unsafe<number | string>({ type: ['number', 'string'] })),
  /** How often a bad result is tried again before it counts. */
  retries: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
  /** Level of the event when the check is not as it should be; `warn` under `critical`. */
  level: Type.Optional(Level),
  investigate: Type.Optional(Investigate),
  /** What sessions read when it is not as it should be. */
  runbook: Type.Optional(RunbookName),
}

const DEFAULT_EVERY_S = 60
const MIN_EVERY_S = 10
const MAX_EVERY_S = 86_400
const DEFAULT_RETRIES = 1

/** Seconds between two runs. */
export function everySeconds({ every = DEFAULT_EVERY_S }: { every?: number | string }): number {
  return Math.round(secondsOf(every) ?? DEFAULT_EVERY_S)
}

/** How often a bad result is tried again before it counts. */
export function retriesOf({ retries = DEFAULT_RETRIES }: { retries?: number }): number {
  return retries
}

function secondsOf(every: number | string): number | undefined {
  return typeof every === 'number' ? every : parseDuration(every)
}

/** Where a check is wrong, such as `/url`, empty for the whole, and what is expected there. */
export type Mistake = readonly [path: string, expected: string]

/** What is wrong with the properties that every check may have, once they fit the schema. */
export function commonMistake({ every }: { every?: number | string }): Mistake | undefined {
  if (every === undefined) return undefined
  const seconds = secondsOf(every)
  if (seconds !== undefined && seconds >= MIN_EVERY_S && seconds <= MAX_EVERY_S) return undefined
  return ['/every', 'must be 10s to 24h']
}

type CheckSchema<T extends string, P extends TProperties> = TObject<
  { type: TLiteral<T> } & P & typeof COMMON
>

/** A kind of check: what the inventory says of one, and how it runs. */
export interface CheckKind<T extends string, P extends TProperties> {
  schema: CheckSchema<T, P>
  /** Level of a failure that the inventory gives no level: critical if something is down. */
  level: Level
  /** Names a check that the inventory does not name, by what it checks. */
  nameOf: (check: Static<TObject<P>>) => string
  /** The peer that the check connects to, such as `shop.test:443`. Absent if the kind uses no network. */
  peerOf?: (check: Static<TObject<P>>) => string
  /** What is wrong with a check that fits the schema, such as properties that exclude others. */
  mistakeOf?: (check: Static<TObject<P>>) => Mistake | undefined
  /** Rejects with an error of the network, the file system or the signal. */
  run: (check: Static<TObject<P>>, context: CheckContext) => Promise<Finding>
}

/**
 * Declares a kind of check by the properties that it takes in the inventory; it takes no others.
 */
export function defineCheck<const T extends string, P extends TProperties>(
  type: T,
  { takes, ...kind }: Omit<CheckKind<T, P>, 'schema'> & { takes: P },
): CheckKind<T, P> {
  const properties = { type: Type.Literal(type), ...takes, ...COMMON }
  const schema = Type.Object(properties, { additionalProperties: false })
  return { ...kind, schema: schema as unknown as CheckSchema<T, P> }
}

export function passed(message: string): Finding {
  return { state: 'ok', message }
}

/** Not as it should be. The level of the check decides between `fail` and `warn`. */
export function failed(message: string): Finding {
  return { state: 'fail', message }
}

/**
 * There are no means to look; `why` also says how to have them. What was asked and gives no answer
 * has failed instead.
 */
export function unknown(why: string): Finding {
  return { state: 'unknown', message: `not looked at: ${why}` }
}

export const HttpAddress = Type.String({
  pattern: '^https?://',
  description: 'an address that begins with http:// or https://',
})
export const Path = Type.String({ pattern: '^/', description: 'a path that begins with /' })
/** A name or an address. A program must not take it for an option. */
export const Host = Type.String({
  minLength: 1,
  maxLength: 253,
  pattern: '^[^-\\s]\\S*$',
  description: 'a name or an address',
})
/** A host as a socket takes it: an IPv6 address may stand in brackets, as in a URL. */
export function addressOf(host: string): string {
  const [, inside = ''] = /^\[(.*)\]$/.exec(host) ?? []
  return isIPv6(inside) ? inside : host
}
export const Port = Type.Integer({ minimum: 1, maximum: 65_535 })
export const Argv = Type.Array(Type.String(), { minItems: 1 })
