import Type, { type Static, type TLiteral, type TObject, type TProperties } from 'typebox'
import type { Beat, State } from '../../../db/ops/checks.ts'
import { Level } from '../../../db/ops/events.ts'
import { parseDuration } from '../../../kernel/time.ts'
import type { Redaction } from '../redact.ts'

/** The result of a check, in one line for people. */
export interface Finding {
  state: State
  message: string
  /** How long it took, where that is not how long the look took. */
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
  now: () => Date
}

const DEFAULT_EVERY_S = 60
const DEFAULT_RETRIES = 1

/** What every check may have. */
const COMMON = {
  /** How often it looks: seconds, or a duration such as `5m`. */
  every: Type.Optional(Type.Union([Type.Integer(), Type.String({ pattern: '^[0-9]+[smhd]$' })])),
  /** Results in a row, after the first one, that must be bad too before it counts as failed. */
  retries: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  timeout_s: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 60 })),
  /** Level of the event when the check is not as it should be; `warn` under `critical`. */
  level: Type.Optional(Level),
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

/** What checks of all kinds have. */
type Common = Static<TObject<typeof COMMON>>

/** How often a check looks, in seconds. */
export function everySeconds({ every = DEFAULT_EVERY_S }: Common): number {
  return typeof every === 'string' ? (parseDuration(every) ?? DEFAULT_EVERY_S) : every
}

/** How often a bad result is looked at again before it counts. */
export function retriesOf({ retries = DEFAULT_RETRIES }: Common): number {
  return retries
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

export const Path = Type.String({ pattern: '^/' })
export const Argv = Type.Array(Type.String(), { minItems: 1 })
