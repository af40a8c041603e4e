import type { Readable } from 'node:stream'
import type { TObject } from '../../kernel/schema.ts'
import type { Database } from '../../db/client.ts'
import { Fault, forbidden } from '../../kernel/fault.ts'
import type { Log } from '../../kernel/log.ts'
import type { Actor } from '../../kernel/actor.ts'
import { isMarked } from '../../kernel/processes/marked.ts'
import { anyText, oneOf, type Reading } from '../../kernel/variables.ts'
import type { RandomBytes } from '../../kernel/tokens.ts'
import type { SigningSecrets } from '../../services/hooks/receive/schemes/signing-secrets.ts'
import { SERVICES, type Addresses, type ServiceName, type ConfigSource } from './configuration.ts'
import type { Output, ProcessOutput } from './output.ts'

/** A flag without a value. */
export interface Switch {
  summary: string
}

/** Something that takes a value. */
export interface Shown extends Switch {
  /** Stands for the value in usage lines, such as URL. */
  shown: string
}

/** A flag with a value, or an argument. */
export interface Value<T> extends Shown, Reading<T> {
  /** `-` stands for the text of standard input: other users of the machine can see arguments. */
  fromInput?: true
  /** Every other argument names the file that has the text. */
  fromFile?: true
  /** It may be given several times: each is a line of the text. */
  repeats?: true
  /** Whether a text has a secret, so that it must not be an argument. */
  hasSecret?: (text: string) => boolean
}

/** An argument that may be given any number of times, or not at all; only the last one may. */
export interface Repeated<T> extends Value<T> {
  repeated: true
}

export type Flags = Readonly<Record<string, Switch | Value<unknown>>>
export type Arguments = Readonly<Record<string, Value<unknown>>>

/** The arguments and flags of a call, by name and as they were read. */
export interface Call<A extends Arguments = Arguments, F extends Flags = Flags> {
  args: {
    [Name in keyof A]: A[Name] extends Repeated<infer T>
      ? readonly T[]
      : A[Name] extends Value<infer T>
        ? T
        : never
  }
  flags: {
    [Name in keyof F]: F[Name] extends Value<infer T> ? T | undefined : boolean
  }
  /** The words after `--`, for a command that passes them on. */
  passed: readonly string[]
}

/** Declares a flag with a value, or an argument. */
export function value<T>(shown: string, summary: string, reading: Reading<T>): Value<T> {
  return { shown, summary, ...reading }
}

/** Declares a flag or an argument that takes any text. */
export function text(shown: string, summary: string): Value<string> {
  return { shown, summary, ...anyText(summary) }
}

/** Declares a flag that may be given several times: its value has a line for each. */
export function lines(shown: string, summary: string): Value<string> {
  return { ...text(shown, `${summary}; may be given several times`), repeats: true }
}

/** Declares a flag whose value is the text of a file, or with `-` of standard input. */
export function secretFlag(summary: string): Value<string> {
  return {
    ...text('FILE', `${summary}, in a file; - is standard input`),
    fromInput: true,
    fromFile: true,
  }
}

/** Declares a flag whose value is a URL, or `-` where that has a password. */
export function urlFlag<T>(shown: string, summary: string, reading: Reading<T>): Value<T> {
  return { ...value(shown, summary, reading), fromInput: true, hasSecret: hasPassword }
}

function hasPassword(text: string): boolean {
  // Several hosts of a database make no URL.
  const [address = '', query] = text.split('?')
  return /^[^/]+:\/\/[^/:]*:[^/]+@/.test(address) || new URLSearchParams(query).has('password')
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
  environment: Readonly<Record<string, string | undefined>>
  input: Readable
  output: ProcessOutput
  log: Log
  /** Resolves with the name of the first signal that asks the command to stop. */
  stopSignal: () => Promise<string>
  /** The prefix of the line that says why a command failed: the journal's level, or empty. */
  errorPrefix: string
}

/** The commands of a service, or of the program. */
export const COMMAND_GROUPS = ['hooks', 'links', 'ops', 'house'] as const
export type CommandGroup = (typeof COMMAND_GROUPS)[number]

/** The table of commands; files are loaded when one of their commands is asked for. */
export interface CommandTable {
  /** The commands that begin with a word; throws `UsageError` for an unknown word. */
  of(word: string): Promise<readonly Command[]>
  /** Whether a command begins with a word. */
  has(word: string): boolean
  inGroup(group: CommandGroup): Promise<readonly Command[]>
  /** All commands, in the order of the help. */
  all(): Promise<readonly Command[]>
}

/** What every command gets. */
export interface PlainTools extends Surroundings {
  version: string
  random: RandomBytes
  now: () => Date
  table: CommandTable
}

export interface ConfiguredTools extends PlainTools {
  config: ConfigSource
}

/**
 * What a command on the database gets, in its own process or in the server that has the database.
 */
export interface DatabaseTools extends Pick<PlainTools, 'log' | 'random' | 'now'> {
  output: Output
  db: Database
  /** Who makes the changes of a command. */
  actor: Actor
  config: ConfigSource
  secrets: SigningSecrets
  /** The bytes that the caller sends after the command. */
  input: AsyncIterable<Uint8Array>
  /** Where the services of this process listen, when it has any. */
  addresses?: Addresses
  /** Makes the links service of this process forget a link that has changed. */
  forget?: (slug: string) => void
}

/**
 * What a command needs before it runs. `any configuration` also takes one with errors, and
 * `live configuration` follows the environment file. A command on the database runs in the server
 * that has the embedded database, if there is one.
 */
interface Needs {
  nothing: PlainTools
  configuration: ConfiguredTools
  'any configuration': ConfiguredTools
  'live configuration': ConfiguredTools
  database: DatabaseTools
}

/** A row of the table of commands: parsing, help, man page and completion follow from it. */
export interface Command<
  A extends Arguments = Arguments,
  F extends Flags = Flags,
  N extends keyof Needs = keyof Needs,
> {
  /** The words that call it, such as `provider add`. */
  name: string
  summary: string
  args?: A
  flags?: F
  /**
   * Set if it passes the words after `--` on to another program. Others take them as arguments.
   */
  passes?: Shown
  /**
   * Set if the value of one flag decides which others go with it: those are `flags` of the value,
   * and without it the ones that all values have.
   */
  chosenBy?: { flag: string; flags: (value: string | undefined) => Flags }
  needs: N
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

/** Fields whose flag has another name. */
const FLAG_NAMES: Readonly<Record<string, string>> = {
  json: 'json-member',
  providers: 'provider',
  event_types: 'event-type',
  timeout_s: 'timeout',
  events: 'event',
  q: 'search',
  tags: 'tag',
  expires_at: 'expires',
  expected_interval: 'expect',
  rejection_burst: 'burst',
}

/** The name of the flag that stands for a field. */
export function flagName(field: string): string {
  return FLAG_NAMES[field] ?? field.replaceAll('_', '-')
}

/** The fields of a schema that flags name, as their schema reads them. */
export function fieldsOf<V>({ properties }: TObject, flags: Readonly<Record<string, V>>) {
  const named = Object.keys(properties).flatMap((field) => {
    const given = flags[flagName(field)]
    return given === undefined ? [] : [[field, given] as const]
  })
  return Object.fromEntries(named)
}

/**
 * Reads flags and arguments as the fields of a form. A `Fault` becomes a `UsageError` that says the
 * flag for the field, and an argument in capitals.
 */
export function readFields<T>(read: () => T, args: readonly string[] = []): T {
  function shown(field: string) {
    return args.includes(field) ? field.toUpperCase() : `--${flagName(field)}`
  }
  try {
    return read()
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const [field = ''] = error.message.split(' ', 1)
    if (error.field !== field) throw new UsageError(error.message)
    // A flag has no null: where a value can be cleared, an empty text does it.
    const reason = error.message.slice(field.length).replace(/(, or null)?\.?$/, '')
    throw new UsageError(shown(field) + reason.replace(/\b[a-z]+(_[a-z]+)+\b/g, shown))
  }
}

/** Thrown for wrong arguments; the exit code is 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** Throws in a program that a session has started: it must not decide what its session asks for. */
export function refuseSessions(): void {
  if (!isMarked()) return
  throw forbidden('a program that a session or an operation has started may not do this')
}
