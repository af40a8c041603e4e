import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Level } from '../../db/notices.ts'
import type { State } from '../../db/ops/watch/checks.ts'
import type { Call } from '../helpers/model.ts'

/**
 * An incident of a made-up host: what each tool answers, and what a good answer names. In every text
 * `{-12m}`, `{-3h}` and `{-2d}` become the time that long ago, and `{page}` the address of the pages.
 */
export type Incident = {
  /** What happened, in one line. */
  readonly title: string
  /** `herring`: something looks like the cause and is not. `injection`: a text tries to instruct. */
  readonly kind?: 'herring' | 'injection'
  /** Where the session starts; 2 by default. */
  readonly tier?: 1 | 2 | 3
  /** What a person asks. An incident has this or an alert. */
  readonly asks?: string
  /** What a monitoring tool sent. */
  readonly alert?: string
  readonly host?: RecordedHost
  readonly services: readonly RecordedService[]
  /** What programs print, by their name: the first whose words are all among the arguments. */
  readonly programs?: Readonly<Record<string, readonly RecordedOutput[]>>
  /** Lines of the journal by unit; `kernel` and others come when all units are asked for. */
  readonly journal?: Readonly<Record<string, string>>
  /** Files of the host by their path, such as `/etc/resolv.conf`. */
  readonly files?: Readonly<Record<string, string>>
  /** Answers of the host's web server by path. */
  readonly pages?: Readonly<Record<string, readonly [status: number, body: string]>>
  readonly events?: readonly RecordedEvent[]
  readonly expects: Expected
  /** An answer that must pass. What its calls show proves that the incident can be solved. */
  readonly good: Recording
  /** One that must not: fooled, or satisfied too early. */
  readonly bad: Recording
}

type RecordedHost = {
  readonly name?: string
  readonly uptime_h?: number
  readonly load?: number
  /** Per cent in use. */
  readonly memory?: number
  readonly disks?: Readonly<Record<string, number>>
}

type RecordedService = {
  readonly name: string
  readonly description?: string
  readonly checks: readonly RecordedCheck[]
  /** Names of operations, which only note that they ran. */
  readonly operations?: readonly string[]
}

export type RecordedCheck = {
  readonly name: string
  readonly state: Exclude<State, 'unknown'>
  /** The last line of a check that is not ok. */
  readonly says?: string
  /** Makes it a check of this page, which answers as `pages` has it. */
  readonly page?: string
  /** How long it has this state. */
  readonly since_min: number
  /** Earlier states, the oldest first; without any, it was ok for a week. */
  readonly before?: readonly { state: State; since_min: number; says?: string }[]
  /** The operation after which it is ok. */
  readonly mended_by?: string
}

type RecordedOutput = {
  readonly with?: readonly string[]
  readonly prints: string
  readonly exit?: number
}

type RecordedEvent = {
  readonly min_ago: number
  readonly level: Level
  readonly service: string
  readonly message: string
}

/** What an answer must have. A term begins where a word does; case does not matter. */
type Expected = {
  /** Each is a term, or alternatives of which one is enough. */
  readonly names: readonly (string | readonly string[])[]
  readonly never?: readonly string[]
  /** An operation that must run. */
  readonly runs?: string
  /** Operations that must not run. Without a list none may, but `runs`. */
  readonly never_runs?: readonly string[]
  /** The worst level of an event that may be recorded. */
  readonly worst_level?: Level
}

type Recording = {
  /** A turn each; `shows` must be in what the tool answers. */
  readonly calls: readonly (readonly [...Call, shows?: string])[]
  readonly says: string
}

/** An incident by the name of its file. */
export type NamedIncident = Incident & { readonly name: string }

const FOLDER = join(import.meta.dirname, 'recorded')

/** All recorded incidents, by name. */
export async function listIncidents(): Promise<readonly NamedIncident[]> {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.ts'))
  return Promise.all(
    files.toSorted().map(async (file): Promise<NamedIncident> => {
      const { incident }: { incident: Incident } = await import(join(FOLDER, file))
      return { name: file.slice(0, -'.ts'.length), ...incident }
    }),
  )
}

const UNITS_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** An incident with its times and addresses, as of now. */
export function placed<T>(value: T, now: Date, page: string): T {
  const place = (text: string): string =>
    text.replaceAll('{page}', page).replaceAll(/\{-(\d+)([mhd])\}/g, (_, count, unit) => {
      const at = new Date(now.getTime() - Number(count) * (UNITS_MS[unit] ?? 0))
      return at.toISOString().replace(/\.\d+Z$/, 'Z')
    })
  const visit = (one: unknown): unknown => {
    if (typeof one === 'string') return place(one)
    if (Array.isArray(one)) return one.map(visit)
    if (typeof one !== 'object' || one === null) return one
    return Object.fromEntries(Object.entries(one).map(([name, part]) => [name, visit(part)]))
  }
  return visit(value) as T
}
