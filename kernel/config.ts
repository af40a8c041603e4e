import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { Decode } from 'typebox/value'
import { codeOf, messageOf } from './log.ts'
import { Variables, type Config, type VariableName, type VariableNotes } from './variables.ts'

/** The configuration as it stands; `current` changes when the environment file does. */
export interface ConfigSource {
  readonly current: Config
  /** Names of the sockets that systemd passed, in the order of their file descriptors. */
  readonly inheritedSockets: readonly string[]
  /** The text of each variable that has a value, and where it comes from; may hold secrets. A new map after each reload. */
  readonly origins: ReadonlyMap<VariableName, Origin>
  /** What is wrong with it; empty unless the options have it collected. */
  readonly problems: readonly ConfigProblem[]
  /** Names in the environment with a prefix of ours that are no variables of Gatehouse. */
  readonly unknownNames: readonly string[]
  /** The environment file that it is read from. */
  readonly envFile: string | undefined
  readonly environment: Environment
  close(): void
}

/** Something wrong with the configuration, and the variables whose values are unknown by that. */
export interface ConfigProblem {
  readonly message: string
  readonly variables: readonly VariableName[]
}

/** Where a variable's value comes from. */
export interface Origin {
  readonly place: string
  readonly text: string
}

/** Wrong or unknown configuration: one line that names the variable and what is accepted. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

export type Environment = Readonly<Record<string, string | undefined>>

export interface ConfigOptions {
  /** Values of flags by variable name: they win over everything else. */
  readonly flags: Readonly<Record<string, string>>
  /** The environment, of this process or another. */
  readonly environment: Environment
  readonly envFile: string | undefined
  /** Reads on behind what is wrong, with the default in its place, and tells it in `problems`. */
  readonly collects?: boolean
  /** Told when the environment file was changed: the problem, or undefined when it was taken. */
  readonly onReload?: (problem: string | undefined) => void
}

const NAMES = Object.keys(Variables.properties) as VariableName[]
const OURS = /^(GATEHOUSE|HOOKS|LINKS|OPS)_/
const RELOAD_MS = 1_000

/**
 * Reads the configuration: flag over environment file over environment over credential over default.
 * Throws `ConfigError` on an unknown or invalid value. The environment file is re-read when it
 * changes; a file that has become invalid is reported and changes nothing.
 */
export function openConfig(options: ConfigOptions): ConfigSource {
  const { flags, environment } = options
  const [envFile] =
    firstSet([
      [options.envFile, 'flag'],
      [environment['GATEHOUSE_ENV_FILE'], 'environment'],
    ]) ?? []
  let loaded = load(flags, environment, envFile)
  if (options.collects !== true) refuse(loaded)

  function reload(): void {
    try {
      const next = load(flags, environment, envFile)
      refuse(next)
      loaded = next
      options.onReload?.(undefined)
    } catch (error) {
      options.onReload?.(messageOf(error))
    }
  }
  if (envFile !== undefined && options.onReload !== undefined) {
    watchFile(envFile, { interval: RELOAD_MS, persistent: false }, reload)
  }

  return {
    get current() {
      return loaded.config
    },
    get origins() {
      return loaded.origins
    },
    problems: loaded.problems,
    unknownNames: unknownIn(environment),
    envFile,
    environment,
    inheritedSockets: inheritedSockets(environment),
    close() {
      if (envFile !== undefined) unwatchFile(envFile, reload)
    },
  }
}

/** What a variable's schema says of it for people. */
export function notesOf(name: VariableName): VariableNotes {
  return Variables.properties[name] as unknown as VariableNotes
}

interface Loaded {
  readonly config: Config
  readonly origins: ReadonlyMap<VariableName, Origin>
  readonly problems: readonly ConfigProblem[]
}

function refuse({ problems: [first] }: Loaded): void {
  if (first !== undefined) throw new ConfigError(first.message)
}

function load(
  flags: Readonly<Record<string, string>>,
  environment: Environment,
  envFile: string | undefined,
): Loaded {
  const problems: ConfigProblem[] = []
  function attempt<T>(variables: readonly VariableName[], read: () => T): T | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push({ message: error.message, variables })
      return undefined
    }
  }
  const file = envFile === undefined ? {} : (attempt(NAMES, () => readEnvFile(envFile)) ?? {})
  for (const name of unknownIn(file)) {
    const message = `${name} in ${envFile} is no variable of Gatehouse: correct its name or remove it; see gatehouse help`
    problems.push({ message, variables: [] })
  }
  const config: Record<string, unknown> = {}
  const origins = new Map<VariableName, Origin>()
  for (const name of NAMES) {
    const found = firstSet([
      [flags[name], 'flag'],
      [file[name], 'environment file'],
      [environment[name], 'environment'],
      [attempt([name], () => readCredential(name, environment)), 'credential'],
      [
        name === 'GATEHOUSE_DATA_DIR' ? environment['STATE_DIRECTORY'] : undefined,
        'STATE_DIRECTORY',
      ],
      [notesOf(name).default, 'default'],
    ])
    if (found === undefined) continue
    const [text, place] = found
    const value = attempt([name], () => decode(name, text))
    const fallback = notesOf(name).default
    if (value !== undefined) origins.set(name, { text, place })
    if (value !== undefined) config[name] = value
    else if (fallback !== undefined) config[name] = decode(name, fallback)
  }
  return { config: config as Config, origins, problems }
}

/** The first place where a variable has a value; an empty one counts as none. */
function firstSet(
  places: readonly (readonly [string | undefined, string])[],
): readonly [string, string] | undefined {
  for (const [value, place] of places)
    if (value !== undefined && value !== '') return [value, place]
  return undefined
}

function decode(name: VariableName, text: string): unknown {
  try {
    return Decode(Variables.properties[name], text)
  } catch (error) {
    // The value is never quoted: a URL, a host or a command may hold a password.
    throw new ConfigError(
      `${name} is not valid (${messageOf(error)}): expected ${notesOf(name).form}`,
    )
  }
}

/** Names that begin like ours and are no variables of Gatehouse, in their order. */
function unknownIn(values: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.keys(values).filter(
    (name) =>
      OURS.test(name) && name !== 'GATEHOUSE_ENV_FILE' && !NAMES.includes(name as VariableName),
  )
}

/** What is said once of the names in the environment that Gatehouse does not know. */
export function ignoredText(unknownNames: readonly string[]): string {
  return `unknown in the environment and ignored: ${unknownNames.join(', ')}; see gatehouse help for the names that count`
}

function readEnvFile(path: string): Readonly<Record<string, string | undefined>> {
  try {
    return parseEnv(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new ConfigError(
      `The environment file ${path} can't be read (${messageOf(error)}): expected lines NAME=value`,
    )
  }
}

/** A systemd credential (`LoadCredential`) under the variable's name in lower case. */
function readCredential(name: VariableName, environment: Environment): string | undefined {
  const folder = environment['CREDENTIALS_DIRECTORY']
  if (folder === undefined || notesOf(name).secret !== true) return undefined
  const path = join(folder, name.toLowerCase())
  try {
    // An editor or echo ends a file with a newline, which is no part of the secret.
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    // Any other reason: going on without the secret could mean another database.
    if (codeOf(error) === 'ENOENT') return undefined
    throw new ConfigError(`The credential ${path} can't be read (${messageOf(error)})`)
  }
}

function inheritedSockets(environment: Environment): readonly string[] {
  if (environment['LISTEN_PID'] !== String(process.pid)) return []
  const count = Number(environment['LISTEN_FDS'] ?? 0)
  const names = (environment['LISTEN_FDNAMES'] ?? '').split(':')
  return Array.from({ length: count }, (_, i) => names[i] ?? `unnamed-${i}`)
}
