import { resolve } from 'node:path'
import { splitDatabaseUrl } from './database-url.ts'
import { parseBlocks } from './net/addresses.ts'
import { parseAddress, type Address } from './net/listen.ts'
import { DURATION_FORM, parseDuration } from './time.ts'

/** A variable: how its text is read, and what help, `check` and errors say about it. */
export interface Variable<T> extends Reading<T> {
  /** When a change counts: as soon as it is read again, or from the next start. */
  counts: 'at once' | 'from the next start'
  /** A secret may also come from a systemd credential and never from a flag. */
  secret?: true
  /** A file in the data directory that has the text where nothing else has it. */
  file?: string
  /** The variable's flag, where a contract names another one than follows from its name. */
  flag?: string
  /** The text that counts where it is unset. */
  default?: string
}

/** A table of variables by name. */
export type Variables = Readonly<Record<string, Variable<unknown>>>

/** The values of a table of variables; one without a default may be unset. */
export type ValuesOf<V extends Variables> = {
  readonly [Name in keyof V]: ReturnType<V[Name]['read']> | UnlessDefault<V[Name]>
}

type UnlessDefault<V> = V extends { default: string } ? never : undefined

/** Declares a secret, which is any text. */
export function secret(form: string) {
  return { ...anyText(form), counts: 'at once', secret: true } satisfies Variable<string>
}

/** Declares where a service listens. */
export function address(fallback: string) {
  return {
    form: 'host:port, unix:/path, unix:/path?mode=0660 or fd:NAME',
    counts: 'from the next start',
    read: parseAddress,
    default: fallback,
  } satisfies Variable<Address>
}

/** The public address of a service. */
export const baseUrl = {
  form: 'an http:// or https:// URL without a path',
  counts: 'at once',
  read(text) {
    const url = readWebUrl(text)
    if (url.pathname !== '/' || url.search !== '') throw new SyntaxError('it has a path')
    return url.origin
  },
} satisfies Variable<string>

/** A file or a folder; its path is relative to the folder in which the program starts. */
export function path(form: string): Reading<string> {
  return { form, read: (text) => resolve(text) }
}

/** The address of a PostgreSQL database. */
export const databaseUrl: Reading<string> = { form: 'a postgres:// URL', read: readDatabaseUrl }

const HEADER_NAME = pattern('', /^[A-Za-z0-9-]{1,100}$/)

/** The variables of the program itself; each service declares its own beside its code. */
export const programVariables = {
  DATABASE_URL: {
    ...databaseUrl,
    form: 'a postgres:// URL; unset for the embedded database',
    counts: 'from the next start',
    secret: true,
  },
  GATEHOUSE_DATA_DIR: {
    ...path('a folder'),
    counts: 'from the next start',
    default: './data',
  },
  GATEHOUSE_INSTANCES: {
    ...integer({ min: 1, max: 64 }),
    form: 'a whole number of processes from 1 to 64 that share the listeners',
    counts: 'from the next start',
    default: '1',
  },
  GATEHOUSE_TRUSTED_PROXIES: {
    form: 'a comma-separated list of CIDR blocks',
    counts: 'at once',
    read: (text) => parseBlocks(text.split(',').map((block) => block.trim())),
  },
  GATEHOUSE_USER_HEADER: {
    form: 'the name of a request header',
    counts: 'at once',
    read: (text) => HEADER_NAME.read(text).toLowerCase(),
    default: 'Remote-Email',
  },
  GATEHOUSE_GROUPS_HEADER: {
    form: 'the name of a request header',
    counts: 'at once',
    read: (text) => HEADER_NAME.read(text).toLowerCase(),
  },
  GATEHOUSE_AUDIT_DAYS: {
    ...integer({ min: 0, max: 36_500 }),
    form: 'a whole number of days from 0 (kept whatever their age) to 36500',
    counts: 'at once',
    default: '365',
  },
  GATEHOUSE_HEARTBEAT_URL: {
    form: 'an http:// or https:// URL that is called once a minute while checks run in time',
    counts: 'at once',
    secret: true,
    read: (text) => readWebUrl(text).href,
  },
  GATEHOUSE_WATCHDOG_S: {
    ...integer({ min: 0, max: 3_600, of: 'seconds' }),
    form: 'a whole number of seconds from 1 to 3600, or 0 for no watchdog',
    counts: 'from the next start',
    default: '60',
  },
} satisfies Variables

function readDatabaseUrl(text: string) {
  if (!/^postgres(ql)?:\/\//.test(text))
    throw new SyntaxError('it does not start with postgres://')
  const { start, hosts, path, query } = splitDatabaseUrl(text)
  // Throws URIError where the client would: at a % that starts no encoded byte.
  decodeURIComponent(start)
  // Each of several hosts is checked alone.
  const isUrl = (host: string) => URL.canParse(`${start}${host || 'localhost'}${path}?${query}`)
  if (!hosts.split(',').every(isUrl)) {
    throw new SyntaxError('it has another form')
  }
  return text
}

/** How the text of a variable, a flag or an argument is read. */
export interface Reading<T> {
  /** What is accepted, in words: the end of "expected …" and "must be …". */
  form: string
  /** Throws an error whose message quotes no value: it may be a password. */
  read: (text: string) => T
}

/** Any text. */
export function anyText(form: string): Reading<string> {
  return { form, read: (text) => text }
}

/** A text that matches a pattern. */
export function pattern(form: string, expression: RegExp): Reading<string> {
  return accepted(form, (text) => (expression.test(text) ? text : undefined))
}

/** One of a few words. */
export function oneOf<const T extends string>(...words: readonly T[]): Reading<T> {
  const last = words.at(-1) ?? ''
  const form = words.length === 1 ? last : `${words.slice(0, -1).join(', ')} or ${last}`
  return accepted(form, (text) => words.find((known) => known === text), 'it is none of them')
}

interface Bounds {
  min: number
  max: number
  /** What is counted. */
  of?: string
}

/** A whole number within bounds. */
export function integer({ min, max, of = '' }: Bounds): Reading<number> {
  function parse(text: string): number | undefined {
    const number = /^\d{1,10}$/.test(text) ? Number(text) : -1
    return number < min || number > max ? undefined : number
  }
  const form = `a whole number${of === '' ? '' : ` of ${of}`} from ${min} to ${max}`
  return accepted(form, parse, 'it is out of bounds')
}

/** Reads text with a function that gives undefined for what it does not accept. */
export function accepted<T>(
  form: string,
  parse: (text: string) => T | undefined,
  problem = 'it has another form',
): Reading<T> {
  return {
    form,
    read(text) {
      const value = parse(text)
      if (value === undefined) throw new SyntaxError(problem)
      return value
    },
  }
}

/** A duration in seconds within bounds, which `limits` says in words. */
export function duration(min: number, max: number, limits: string): Reading<number> {
  return accepted(`${DURATION_FORM}, ${limits}`, (text) => {
    const seconds = parseDuration(text) ?? -1
    return seconds < min || seconds > max ? undefined : seconds
  })
}

/** Some of a few words. */
export function someOf<const T extends string>(...words: readonly T[]): Reading<readonly T[]> {
  return accepted(`any of ${words.join(', ')}, with commas`, (text) => {
    const chosen = text.split(',').map((word) => words.find((known) => known === word))
    return chosen.includes(undefined) ? undefined : chosen.filter((word) => word !== undefined)
  })
}

/** `true` or `false`. */
export const trueOrFalse: Reading<boolean> = {
  form: 'true or false',
  read: (text) => oneOf('true', 'false').read(text) === 'true',
}

/** An http or https URL; a user or a password in it would be shown where the address is. */
export function readWebUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const plain = url?.username === '' && url.password === '' && /^https?:$/.test(url.protocol)
  if (url === undefined || !plain) throw new SyntaxError('it has another form')
  return url
}
