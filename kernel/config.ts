import cluster from 'node:cluster'
import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { meantText } from './closest.ts'
import { codeOf, messageOf } from './log.ts'
import type { ValuesOf, Variable, Variables } from './variables.ts'

/** The configuration as it stands; `current` changes when the environment file does. */
export type ConfigSource<V extends Variables> = ReturnType<typeof openConfig<V>>

/** Something wrong with the configuration, and the variables whose values are unknown by that. */
interface ConfigProblem {
  message: string
  variables: readonly string[]
}

/** Where a variable's value comes from, and its text, which may be a secret. */
export interface Origin {
  place: string
  text: string
  secret: boolean
}

/** Wrong or unknown configuration: one line that names the variable and what is accepted. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

export type Environment = Readonly<Record<string, string | undefined>>

export interface ConfigOptions {
  /** Values of flags by variable name, with that of the environment file: they win. */
  flags: Readonly<Record<string, string>>
  /** The environment, of this process or another. */
  environment: Environment
  /**
   * Collects errors in `problems` instead of throwing the first; the default stands for a wrong
   * value.
   */
  collects?: boolean
  /** Names with a prefix of ours that are no variables: other programs get them from us. */
  otherNames: readonly string[]
  /** Called when the configuration was read again. */
  onReload?: (outcome: Reload) => void
}

/** What came of reading the configuration again: a problem, or the names of what has changed. */
export type Reload =
  | { problem: string }
  | { applied: readonly string[]; waiting: readonly string[] }

/** How often the environment file is checked. */
const LOOK_MS = 500
/** The file is read this long after a change, unless the next check finds another one. */
const SETTLED_MS = 1.5 * LOOK_MS

/**
 * Reads the configuration: flag over environment file over environment over credential over file
 * of the data directory over default. Throws `ConfigError` on an unknown or invalid value. The
 * environment file is re-read when it changes; a file that has become invalid is reported and
 * changes nothing. A variable that counts from the next start keeps its value until then.
 */
export function openConfig<V extends Variables>(variables: V, options: ConfigOptions) {
  const { flags, environment } = options
  const envFile = flags['GATEHOUSE_ENV_FILE'] || environment['GATEHOUSE_ENV_FILE'] || undefined
  let loaded = load(variables, options, envFile)
  if (options.collects !== true) refuse(loaded)

  /** What was read and counts from the next start, by name; undefined where it is unset then. */
  let waiting: ReadonlyMap<string, Origin | undefined> = new Map()

  function readAgain(): Reload {
    try {
      // The data directory counts from the next start, and so do the files in another one.
      const next = load(variables, options, envFile, loaded.config['GATEHOUSE_DATA_DIR'])
      refuse(next)
      const names = Object.keys(variables)
      const changed = changedNames(names, loaded, next)
      const late = changed.filter((name) => countsLate(variables, name))
      loaded = keepValues(late, loaded, next)
      waiting = new Map(late.map((name) => [name, next.origins.get(name)]))
      const applied = changed.filter((name) => !late.includes(name))
      return { applied, waiting: late }
    } catch (error) {
      return { problem: messageOf(error) }
    }
  }

  function reload() {
    options.onReload?.(readAgain())
  }

  let settling: NodeJS.Timeout | undefined
  /** An editor may write the file in place: read too early, it would have no secrets. */
  function reloadSettled() {
    clearTimeout(settling)
    settling = setTimeout(reload, SETTLED_MS).unref()
  }
  if (envFile !== undefined && options.onReload !== undefined) {
    watchFile(envFile, { interval: LOOK_MS, persistent: false }, reloadSettled)
  }

  return {
    get current() {
      return loaded.config as ValuesOf<V>
    },
    /** Each variable that has a value. A new map after each reload. */
    get origins() {
      return loaded.origins
    },
    /** Variables whose new value counts from the next start; undefined means unset. */
    get waiting() {
      return waiting
    },
    /** Reads it again, also where no file has changed, and tells `onReload`. */
    reload,
    /** Reads it again and gives what came of it. */
    readAgain,
    /** What is wrong with it; empty unless the options have it collected. */
    problems: loaded.problems,
    /** Names in the environment with a prefix of ours that are no variables of Gatehouse. */
    unknownNames: unknownIn(variables, environment, options.otherNames),
    envFile,
    environment,
    /** Names of the sockets that systemd passed, in the order of their file descriptors. */
    inheritedSockets: inheritedSockets(environment),
    close() {
      if (envFile !== undefined) unwatchFile(envFile, reloadSettled)
      clearTimeout(settling)
    },
  }
}

interface Loaded {
  config: Readonly<Record<string, unknown>>
  origins: ReadonlyMap<string, Origin>
  problems: readonly ConfigProblem[]
}

function countsLate(variables: Variables, name: string) {
  return variables[name]?.counts === 'from the next start'
}

function changedNames(names: readonly string[], before: Loaded, after: Loaded) {
  const textIn = ({ origins }: Loaded, name: string) => origins.get(name)?.text
  return names.filter((name) => textIn(before, name) !== textIn(after, name))
}

/** What was read again, with the former values of some variables. */
function keepValues(names: readonly string[], before: Loaded, after: Loaded): Loaded {
  const config = { ...after.config }
  const origins = new Map(after.origins)
  for (const name of names) {
    const origin = before.origins.get(name)
    config[name] = before.config[name]
    if (origin === undefined) origins.delete(name)
    else origins.set(name, origin)
  }
  return { ...after, config, origins }
}

function refuse({ problems: [first] }: Loaded) {
  if (first !== undefined) throw new ConfigError(first.message)
}

function load(
  variables: Variables,
  options: ConfigOptions,
  envFile: string | undefined,
  dataDirectory?: unknown,
): Loaded {
  const { flags, environment, otherNames } = options
  const names = Object.keys(variables)
  const problems: ConfigProblem[] = []
  function attempt<T>(affected: readonly string[], read: () => T): T | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push({ message: error.message, variables: affected })
      return undefined
    }
  }
  const file = envFile === undefined ? {} : (attempt(names, () => readEnvFile(envFile)) ?? {})
  for (const name of unknownIn(variables, file, otherNames)) {
    const message =
      `${name} in ${envFile} is no variable of Gatehouse` +
      `${meantText(name, names) || ': correct its name or remove it'}; see gatehouse help settings`
    problems.push({ message, variables: [] })
  }
  const { CREDENTIALS_DIRECTORY: credentials, STATE_DIRECTORY: stateDirectory } = environment
  const config: Record<string, unknown> = {}
  const origins = new Map<string, Origin>()
  for (const [name, variable] of Object.entries(variables)) {
    const { secret = false, default: fallback, file: ownFile } = variable
    const folder = secret ? credentials : undefined
    // The directory is a variable of the program, and those are read first.
    const directory = dataDirectory ?? config['GATEHOUSE_DATA_DIR']
    const found = firstSet([
      [flags[name], 'flag'],
      [file[name], 'environment file'],
      [environment[name], 'environment'],
      [folder && attempt([name], () => readCredential(folder, name)), 'credential'],
      [ownFile && readOwnFile(join(String(directory), ownFile)), 'data directory'],
      [name === 'GATEHOUSE_DATA_DIR' ? stateDirectory : undefined, 'STATE_DIRECTORY'],
      [fallback, 'default'],
    ])
    if (found === undefined) continue
    const [text, place] = found
    const shown = place === 'data directory' ? join(String(directory), ownFile ?? '') : name
    const value = attempt([name], () => readValue(shown, variable, text))
    if (value !== undefined) origins.set(name, { text, place, secret })
    if (value !== undefined) config[name] = value
    else if (fallback !== undefined) config[name] = readValue(name, variable, fallback)
  }
  return { config, origins, problems }
}

/** The first place where a variable has a value; an empty one counts as none. */
function firstSet(places: readonly (readonly [string | undefined, string])[]) {
  return places.find((given): given is readonly [string, string] => Boolean(given[0]))
}

function readValue(name: string, { read, form }: Variable<unknown>, text: string): unknown {
  try {
    return read(text)
  } catch (error) {
    // The value is never quoted: a URL, a host or a command may hold a password.
    throw new ConfigError(`${name} is not valid (${messageOf(error)}): expected ${form}`)
  }
}

/** Names with the prefix of a variable, up to the first `_`, that are not variables. */
function unknownIn(
  variables: Variables,
  values: Readonly<Record<string, string | undefined>>,
  otherNames: readonly string[],
): readonly string[] {
  const known = new Set([...Object.keys(variables), ...otherNames, 'GATEHOUSE_ENV_FILE'])
  const prefixes = new Set(Object.keys(variables).map(prefixOf))
  // Other programs have variables such as DATABASE_NAME.
  prefixes.delete(prefixOf('DATABASE_URL'))
  return Object.keys(values).filter((name) => prefixes.has(prefixOf(name)) && !known.has(name))
}

function prefixOf(name: string) {
  return name.slice(0, name.indexOf('_') + 1)
}

function readEnvFile(path: string): Readonly<Record<string, string | undefined>> {
  try {
    return parseEnv(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new ConfigError(
      `The environment file ${path} can't be read (${messageOf(error)}): ` +
        'expected lines NAME=value',
    )
  }
}

/**
 * The content of a systemd credential (`LoadCredential`), which has the variable's name in lower
 * case.
 */
function readCredential(folder: string, name: string): string | undefined {
  const path = join(folder, name.toLowerCase())
  try {
    // An editor or echo ends a file with a newline, which is no part of the secret.
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    // Going on without the secret could mean another database.
    throw new ConfigError(`The credential ${path} can't be read (${messageOf(error)})`)
  }
}

/** The text of a file in the data directory, which commands of other users can't look into. */
function readOwnFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return undefined
  }
}

function inheritedSockets(environment: Environment): readonly string[] {
  // An instance (`serve --instances`) gets them from the process that has started it.
  const receiver = cluster.isWorker ? process.ppid : process.pid
  if (environment['LISTEN_PID'] !== String(receiver)) return []
  const count = Number(environment['LISTEN_FDS'] ?? 0)
  const names = (environment['LISTEN_FDNAMES'] ?? '').split(':')
  return Array.from({ length: count }, (_, i) => names[i] ?? `unnamed-${i}`)
}
