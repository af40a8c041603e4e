import { hostName, isLoopbackName } from '../../../kernel/net/addresses.ts'
import { SIGNED_PROVIDERS } from '../../../services/hooks/receive/schemes/provider-names.ts'
import { secretVariable } from '../../../services/hooks/receive/schemes/configured-secrets.ts'
import {
  areKnown,
  describeConfiguration,
  placeOf,
  type ServiceName,
  type ConfigSource,
  ignoredText,
  variableOf,
  VARIABLE_NAMES,
} from '../../frame/configuration.ts'
import { fail, ok, warn, type Findings } from '../../frame/output.ts'
import { keyFile } from '../secret-key.ts'
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf } from '../../../kernel/log.ts'

/** A line for each wrong variable, or one if all are right; and the variables without effect. */
export function configurationFindings(config: ConfigSource) {
  const { problems, origins, unknownNames } = config
  const what = 'configuration'
  const findings = problems.map(({ message }) => fail(what, message))
  if (findings.length === 0) {
    const set = [...origins.values()].filter(({ place }) => place !== 'default')
    findings.push(ok(what, `variables set: ${set.length}`))
  }
  // A warning, never a refusal: others name variables like ours.
  if (unknownNames.length > 0) findings.push(warn(what, ignoredText(unknownNames)))
  for (const [name, other] of COMPANIONS) {
    if (!origins.has(name) || origins.has(other) || !areKnown(config, [other])) continue
    findings.push(warn(what, `${name} has no effect without ${other}: set that too`))
  }
  return findings
}

/** A line for each variable of a running server that has another value from its next start on. */
export function waitingFindings(config: ConfigSource): Findings {
  return describeConfiguration(config)
    .filter(([name]) => config.waiting.has(name))
    .map(([name, shown]) => warn('configuration', `${name} is ${shown}: restart to apply it`))
}

/** Variables that have no effect without another one. */
const COMPANIONS = [
  ['HOOKS_QUEUE_URL', 'HOOKS_QUEUE_CHANNELS'],
  ['HOOKS_QUEUE_CHANNELS', 'HOOKS_QUEUE_URL'],
  ['HOOKS_RECOVER_GITHUB_TOKEN', 'HOOKS_RECOVER'],
  ['HOOKS_RECOVER_STRIPE_KEY', 'HOOKS_RECOVER'],
  ['OPS_MODEL_KEY', 'OPS_MODEL_URL'],
  ['GATEHOUSE_GROUPS_HEADER', 'GATEHOUSE_TRUSTED_PROXIES'],
  ...SIGNED_PROVIDERS.map((provider) => {
    const variable = secretVariable(provider)
    return [`${variable}_PREVIOUS`, variable] as const
  }),
] as const

const WHAT = 'GATEHOUSE_TRUSTED_PROXIES'
const UNSEEN =
  "a proxy that leaves no sign of itself can't be seen, " +
  'and everybody who comes through it counts as a user of this machine'

/** Which proxies are trusted; other proxies may be invisible to Gatehouse. */
export function proxyFindings(config: ConfigSource, services: readonly ServiceName[]) {
  const trusted = config.origins.get(WHAT)
  if (trusted !== undefined) return [ok(WHAT, `${trusted.text}; of others, ${UNSEEN}`)]
  const open = services.find((service) => {
    const { baseUrl } = placeOf(service, config)
    return baseUrl !== undefined && !isLoopbackName(hostName(new URL(baseUrl).host))
  })
  if (open === undefined)
    return [ok(WHAT, `none; ${UNSEEN}: set this before you put a proxy in front`)]
  const base = `${open.toUpperCase()}_BASE_URL`
  const known = `none, but ${base} is a public address`
  return [warn(WHAT, `${known}; ${UNSEEN}: set this to the proxy's address`)]
}

const OTHERS_READ = 0o004
const OTHERS_WRITE = 0o002

/** Whether others may read or change files that hold secrets. */
export function secretFileFindings(
  config: ConfigSource,
  credentials: string | undefined,
): Findings {
  const files = [...environmentFile(config), ...credentialFiles(credentials), ...keyFiles(config)]
  const what = 'secret files'
  const bad = files.flatMap((file) => problemOf(file) ?? [])
  if (files.length === 0 || bad.length > 0) return bad.map((text) => warn(what, text))
  const places = files.map(({ path }) => {
    const folder = dirname(path)
    return folder === credentials ? folder : path
  })
  return [ok(what, [...new Set(places)].join(', '))]
}

interface SecretFile {
  path: string
  secret: boolean
}

function environmentFile({ envFile, origins }: ConfigSource) {
  // configurationFindings reports a file that can't be read.
  if (envFile === undefined || !existsSync(envFile)) return []
  const given = origins.values().filter(({ place }) => place === 'environment file')
  return [{ path: envFile, secret: given.some(({ secret }) => secret) }]
}

/** Credentials of systemd that hold a variable. */
function credentialFiles(folder: string | undefined) {
  if (folder === undefined) return []
  return VARIABLE_NAMES.filter((name) => variableOf(name).secret === true)
    .map((name) => ({ path: join(folder, name.toLowerCase()), secret: true }))
    .filter(({ path }) => existsSync(path))
}

/** The key that encrypts secrets, also where a variable wins over it. */
function keyFiles(config: ConfigSource): readonly SecretFile[] {
  const path = keyFile(config)
  return existsSync(path) ? [{ path, secret: true }] : []
}

function problemOf({ path, secret }: SecretFile) {
  const { mode = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
  const who = 'everybody on this host may'
  const remedy = `chmod o-rwx ${path}`
  if ((mode & OTHERS_WRITE) !== 0) return `${who} change ${path}: ${remedy}`
  if (!secret || (mode & OTHERS_READ) === 0) return undefined
  return `${who} read ${path}, and it holds secrets: ${remedy}, then replace them`
}

/** With less the next segments of the write-ahead log (16 MiB each) may not fit. */
export const MIN_FREE = 64 * 1024 * 1024
/** Less is worth a warning. */
export const LOW_FREE = 1024 * 1024 * 1024
const OTHERS = 0o007

/**
 * Whether the data directory, or its nearest parent, is writable and has free space. With a
 * database on a server it has the files of ops alone, without which the services run.
 */
export function dataDirectoryFindings(directory: string, hasDatabase: boolean) {
  const there = nearest(directory)
  const access = accessFinding(directory, there)
  if (access.level === 'fail') return [hasDatabase ? access : warn(access.what, access.detail)]
  return hasDatabase ? [access, spaceFinding(there)] : [access]
}

function nearest(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearest(dirname(path))
}

function accessFinding(directory: string, there: string) {
  const what = 'data directory'
  try {
    const info = statSync(there)
    if (!info.isDirectory()) return fail(what, `${there} is a file: choose another folder`)
    accessSync(there, constants.R_OK | constants.W_OK | constants.X_OK)
    if (there !== directory) return ok(what, `${directory}, not created yet`)
    const who = 'everybody on this host may'
    const remedy = `chmod 700 ${directory}`
    if ((info.mode & OTHERS_WRITE) !== 0)
      return warn(what, `${who} write in ${directory}: ${remedy}`)
    if ((info.mode & OTHERS) !== 0) return warn(what, `${who} look into ${directory}: ${remedy}`)
    return ok(what, directory)
  } catch (error) {
    return fail(
      what,
      `${there} can't be written by this user (${messageOf(error)}): ` +
        'correct its owner, or set GATEHOUSE_DATA_DIR',
    )
  }
}

function spaceFinding(place: string) {
  const { bavail, bsize, blocks } = statfsSync(place)
  if (blocks === 0) return ok('free space', `no limit in ${place}`)
  return freeSpaceFinding(place, bavail * bsize)
}

export function freeSpaceFinding(place: string, free: number) {
  const what = 'free space'
  const amount = `${amountOf(free)} in ${place}`
  if (free < MIN_FREE) return warn(what, `only ${amount}: make room, 64 MiB at least`)
  if (free < LOW_FREE)
    return warn(what, `${amount}: make room, or keep fewer events (settings of hooks)`)
  return ok(what, amount)
}

function amountOf(bytes: number) {
  const mebibytes = bytes / 1024 / 1024
  if (mebibytes < 1024) return `${Math.floor(mebibytes)} MiB`
  return `${(mebibytes / 1024).toFixed(1)} GiB`
}
