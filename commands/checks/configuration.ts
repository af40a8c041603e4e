import { hostName, isLoopbackName } from '../../kernel/net/addresses.ts'
import { SIGNED_PROVIDERS, secretVariable } from '../../services/hooks/secrets.ts'
import {
  placeOf,
  type ServiceName,
  type ConfigSource,
  ignoredText,
  notesOf,
  VARIABLE_NAMES,
} from '../configuration.ts'
import { fail, ok, warn, type Finding } from '../output.ts'
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf } from '../../kernel/log.ts'

/** A line for each wrong variable, or one if all are right; and the variables without effect. */
export function configurationFindings(config: ConfigSource): readonly Finding[] {
  const bad = config.problems.map(({ message }) => fail('configuration', message))
  const set = [...config.origins.values()].filter(({ place }) => place !== 'default')
  const all = bad.length > 0 ? bad : [ok('configuration', `variables set: ${set.length}`)]
  return [...all, ...unknown(config), ...idle(config)]
}

/** Names in the environment that Gatehouse does not know: a warning, never a refusal. */
function unknown({ unknownNames }: ConfigSource): readonly Finding[] {
  return unknownNames.length === 0 ? [] : [warn('configuration', ignoredText(unknownNames))]
}

/** Variables that have no effect without another one. */
function idle({ origins, problems }: ConfigSource): readonly Finding[] {
  const pairs = [
    ['HOOKS_QUEUE_URL', 'HOOKS_QUEUE_CHANNELS'],
    ['HOOKS_QUEUE_CHANNELS', 'HOOKS_QUEUE_URL'],
    ['OPS_MODEL_KEY', 'OPS_MODEL_URL'],
    ...SIGNED_PROVIDERS.map((provider) => {
      const variable = secretVariable(provider)
      return [`${variable}_PREVIOUS`, variable] as const
    }),
  ] as const
  return pairs
    .filter(([name, other]) => origins.has(name) && !origins.has(other))
    .filter(([, other]) => !problems.some(({ variables }) => variables.includes(other)))
    .map(([name, other]) =>
      warn('configuration', `${name} has no effect without ${other}: set that too`),
    )
}

const WHAT = 'GATEHOUSE_TRUSTED_PROXIES'
const UNSEEN =
  "a proxy that leaves no sign of itself can't be seen, and everybody who comes through it counts as a user of this machine"

/** Which proxies are trusted; other proxies may be invisible to Gatehouse. */
export function proxyFindings(
  config: ConfigSource,
  services: readonly ServiceName[],
): readonly Finding[] {
  const trusted = config.origins.get(WHAT)
  if (trusted !== undefined) return [ok(WHAT, `${trusted.text}; of others, ${UNSEEN}`)]
  const open = services.find((service) => isPublic(placeOf(service, config).baseUrl))
  if (open === undefined)
    return [ok(WHAT, `none; ${UNSEEN}: set this before you put a proxy in front`)]
  const base = `${open.toUpperCase()}_BASE_URL`
  return [
    warn(WHAT, `none, but ${base} is a public address; ${UNSEEN}: set this to the proxy's address`),
  ]
}

function isPublic(baseUrl: string | undefined): boolean {
  return baseUrl !== undefined && !isLoopbackName(hostName(new URL(baseUrl).host))
}

const OTHERS_READ = 0o004
const OTHERS_WRITE = 0o002

/** Whether others may read or change files that hold secrets. */
export function secretFileFindings(
  config: ConfigSource,
  credentials: string | undefined,
): readonly Finding[] {
  const files = [...environmentFile(config), ...credentialFiles(credentials)]
  const what = 'secret files'
  const bad = files.flatMap(({ path, secret }) => problemOf(path, secret) ?? [])
  if (files.length === 0 || bad.length > 0) return bad.map((text) => fail(what, text))
  const places = files.map(({ path }) => (dirname(path) === credentials ? credentials : path))
  return [ok(what, [...new Set(places)].join(', '))]
}

type SecretFile = Readonly<{ path: string; secret: boolean }>

function environmentFile({ envFile, origins }: ConfigSource): readonly SecretFile[] {
  // configurationFindings reports a file that can't be read.
  if (envFile === undefined || !existsSync(envFile)) return []
  const secret = [...origins.values()].some(
    (origin) => origin.secret && origin.place === 'environment file',
  )
  return [{ path: envFile, secret }]
}

/** Credentials of systemd that hold a variable. */
function credentialFiles(folder: string | undefined): readonly SecretFile[] {
  if (folder === undefined) return []
  const secrets = VARIABLE_NAMES.filter((name) => notesOf(name).secret === true)
  const names = secrets.map((name) => name.toLowerCase())
  try {
    return readdirSync(folder)
      .filter((file) => names.includes(file))
      .map((file) => ({ path: join(folder, file), secret: true }))
  } catch {
    return []
  }
}

function problemOf(path: string, secret: boolean): string | undefined {
  const { mode = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
  if ((mode & OTHERS_WRITE) !== 0)
    return `everybody on this host may change ${path}: chmod o-rwx ${path}`
  if (secret && (mode & OTHERS_READ) !== 0)
    return `everybody on this host may read ${path}, and it holds secrets: chmod o-rwx ${path}, then replace them`
  return undefined
}

/** Less may not suffice for the next segments of the write-ahead log (16 MiB each). */
export const MIN_FREE = 64 * 1024 * 1024
/** Less is worth a warning. */
export const LOW_FREE = 1024 * 1024 * 1024
const OTHERS = 0o007

/** Whether the data directory, or its nearest parent, is writable and has free space. */
export function dataDirectoryFindings(directory: string): readonly Finding[] {
  const there = nearest(directory)
  const access = accessFinding(directory, there)
  return [access, ...(access.level === 'fail' ? [] : [spaceFinding(there)])]
}

function nearest(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearest(dirname(path))
}

function accessFinding(directory: string, there: string): Finding {
  const what = 'data directory'
  try {
    const info = statSync(there)
    if (!info.isDirectory()) return fail(what, `${there} is a file: choose another folder`)
    accessSync(there, constants.R_OK | constants.W_OK | constants.X_OK)
    if (there !== directory) return ok(what, `${directory}, not created yet`)
    if ((info.mode & OTHERS_WRITE) !== 0)
      return fail(what, `everybody on this host may write in ${directory}: chmod 700 ${directory}`)
    if ((info.mode & OTHERS) !== 0)
      return warn(what, `everybody on this host may look into ${directory}: chmod 700 ${directory}`)
    return ok(what, directory)
  } catch (error) {
    return fail(
      what,
      `${there} can't be written by this user (${messageOf(error)}): correct its owner, or set GATEHOUSE_DATA_DIR`,
    )
  }
}

function spaceFinding(place: string): Finding {
  try {
    const { bavail, bsize, blocks } = statfsSync(place)
    return freeSpaceFinding(place, blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize)
  } catch (error) {
    return warn('free space', `not known (${messageOf(error)})`)
  }
}

export function freeSpaceFinding(place: string, free: number): Finding {
  const what = 'free space'
  if (!Number.isFinite(free)) return ok(what, `no limit in ${place}`)
  const amount = `${amountOf(free)} in ${place}`
  if (free < MIN_FREE) return fail(what, `only ${amount}: make room, 64 MiB at least`)
  if (free < LOW_FREE)
    return warn(what, `${amount}: make room, or keep fewer events (settings of hooks)`)
  return ok(what, amount)
}

function amountOf(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024
  return mebibytes < 1024 ? `${Math.floor(mebibytes)} MiB` : `${(mebibytes / 1024).toFixed(1)} GiB`
}
