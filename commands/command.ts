import type { Readable } from 'node:stream'
import type { Database } from '../db/client.ts'
import type { Log } from '../kernel/log.ts'
import { anyText, oneOf, type Reading } from '../kernel/variables.ts'
import type { RandomBytes } from '../kernel/tokens.ts'
import type { SigningSecrets } from '../services/hooks/secrets.ts'
import { SERVICES, type Addresses, type ServiceName, type ConfigSource } from './configuration.ts'
import type { Output } from './output.ts'

/** A flag without a value. */
export interface Switch {
  readonly summary: string
}

/** A flag with a value, or an argument. */
export interface Value<T> extends Switch, Reading<T> {
  /** Stands for the value in usage lines, such as URL. */
  readonly shown: string
  /** `-` stands for the text of standard input: other users of the machine can see arguments. */
  readonly fromInput?: true
}

/** An argument that may be given any number of times, or not at all; only the last one may. */
export interface Repeated<T> extends Value<T> {
  readonly repeated: true
}

export type Flags = Readonly<Record<string, Switch | Value<unknown>>>
export type Arguments = Readonly<Record<string, Value<unknown>>>

/** The arguments and flags of a call, by name and as they were read. */
export interface Call<A extends Arguments = Arguments, F extends Flags = Flags> {
  readonly args: {
    readonly [Name in keyof A]: A[Name] extends Repeated<infer T>
      ? readonly T[]
      : A[Name] extends Value<infer T>
        ? T
        : never
  }
  readonly flags: {
    readonly [Name in keyof F]: F[Name] extends Value<infer T> ? T | undefined : boolean
  }
}

/** Declares a flag with a value, or an argument. */
export function value<T>(shown: string, summary: string, reading: Reading<T>): Value<T> {
  return { shown, summary, ...reading }
}

/** Declares a flag or an argument that takes any text. */
export function text(shown: string, summary: string): Value<string> {
  return { shown, summary, ...anyText(summary) }
}

/** Declares an argument that names any of the services. */
export function servicesArgument(summary: string): Repeated<ServiceName> {
  const shown = SERVICES.map((service) => `[${service}]`).join(' ')
  return { ...value(shown, summary, oneOf(...SERVICES)), repeated: true }
}

/** The services in the order of `SERVICES`; all of them unless some are named. */
export function servicesNamed(named: readonly ServiceName[]): readonly ServiceName[] {
  return SERVICES.filter((service) => named.length === 0 || named.includes(service))
}

/** The flag of every command that prints a table. */
export const JSON_FLAG: Switch = { summary: 'print JSON' }

/** What a command runs in: a process, or a test. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly input: Readable
  readonly output: Output
  readonly log: Log
  /** Resolves with the name of the first signal that asks the command to stop. */
  readonly stopSignal: () => Promise<string>
  /** Stands before the line that says why a command failed: the journal's level, or nothing. */
  readonly errorPrefix: string
  /** Runs the services until a signal, and gives the exit code. */
  readonly serve: (services: readonly ServiceName[], tools: ConfiguredTools) => Promise<number>
}

/** What every command gets. */
export interface PlainTools extends Surroundings {
  readonly version: string
  readonly random: RandomBytes
  readonly now: () => Date
  readonly loadCommands: () => Promise<readonly Command[]>
}

export interface ConfiguredTools extends PlainTools {
  readonly config: ConfigSource
}

/**
 * What a command on the database gets, in its own process or in the server that has the database.
 */
export interface DatabaseTools extends Pick<PlainTools, 'output' | 'log' | 'random' | 'now'> {
  readonly db: Database
  readonly config: ConfigSource
  readonly secrets: SigningSecrets
  /** The bytes that the caller sends after the command. */
  readonly input: AsyncIterable<Uint8Array>
  /** Where the services of this process listen, when it has any. */
  readonly addresses?: Addresses
  /** Makes the links service of this process forget a link that has changed. */
  readonly forget?: (slug: string) => void
}

/**
 * What a command needs before it runs. `any configuration` also takes one with errors, and
 * `live configuration` follows the environment file. A command on the database runs in the server
 * that has the embedded database, if there is one.
 */
interface Needs {
  readonly nothing: PlainTools
  readonly configuration: ConfiguredTools
  readonly 'any configuration': ConfiguredTools
  readonly 'live configuration': ConfiguredTools
  readonly database: DatabaseTools
}

/** A row of the table of commands: parsing, help, man page and completion follow from it. */
export interface Command<
  A extends Arguments = Arguments,
  F extends Flags = Flags,
  N extends keyof Needs = keyof Needs,
> {
  /** The words that call it, such as `provider add`. */
  readonly name: string
  readonly summary: string
  readonly args?: A
  readonly flags?: F
  readonly needs: N
  /** Throws `UsageError` for flags that don't go together, before anything is opened. */
  check?(call: Call<A, F>, now: Date): void
  /** Opens the input of a command on the database, in the caller's process. */
  openInput?(call: Call<A, F>, stdin: Readable): Promise<Readable>
  /** Does the work. Without an exit code it is done; what it throws says why it has failed. */
  run(call: Call<A, F>, tools: Needs[N]): Promise<number | undefined>
  /** The part that the server with the embedded database does, where `run` asks for one. */
  runInServer?(tools: DatabaseTools): Promise<number>
}

/** Declares a command; the types of its arguments and flags are inferred. */
export function command<
  const A extends Arguments,
  const F extends Flags,
  const N extends keyof Needs,
>(row: Command<A, F, N>): Command {
  return row
}

/** Thrown for wrong arguments; the exit code is 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}
