import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Type, { type Static, type TProperties, type TSchema } from 'typebox'
import { parse } from 'yaml'
import { Level } from '../../db/notices.ts'
import { State } from '../../db/ops/watch/checks.ts'
import { firstMismatch, fits } from '../../kernel/validate.ts'

/** An object with these members and no others: what is mistyped would not be judged. */
const strict = <P extends TProperties>(members: P) =>
  Type.Object(members, { additionalProperties: false })
const byName = <T extends TSchema>(schema: T) => Type.Record(Type.String(), schema)
const optional = Type.Optional
const Text = Type.String()
const Amount = Type.Number()
const Texts = Type.Array(Text)

const Host = strict({
  name: optional(Text),
  uptime_h: optional(Amount),
  load: optional(Amount),
  /** Per cent in use. */
  memory: optional(Amount),
  disks: optional(byName(Amount)),
})

const Period = strict({
  state: State,
  since_min: Amount,
  says: optional(Text),
})

const Check = strict({
  name: Text,
  state: Type.Enum(['ok', 'warn', 'fail']),
  /** The last line of a check that is not ok. */
  says: optional(Text),
  /** Makes it a check of this page, which answers as `pages` has it. */
  page: optional(Text),
  /** How long it has this state. */
  since_min: Amount,
  /** Earlier states, the oldest first; without any, it was ok for a week. */
  before: optional(Type.Array(Period)),
  /** The operation after which it is ok. */
  mended_by: optional(Text),
})
export type RecordedCheck = Static<typeof Check>

const Service = strict({
  name: Text,
  description: optional(Text),
  checks: Type.Array(Check),
  /** Names of operations, which only note that they ran. */
  operations: optional(Texts),
})

/** The first whose words are all among the arguments is printed. */
const Output = strict({
  with: optional(Texts),
  prints: Text,
  exit: optional(Amount),
})

const Event = strict({
  min_ago: Amount,
  level: Level,
  service: Text,
  message: Text,
})

/** What an answer must have. A term begins where a word does; case does not matter. */
const Expected = strict({
  /** Each is a term, or alternatives of which one is enough. */
  names: Type.Array(Type.Union([Text, Texts])),
  never: optional(Texts),
  /** An operation that must run. */
  runs: optional(Text),
  /** Operations that must not run. Without a list none may, but `runs`. */
  never_runs: optional(Texts),
  /** The worst level of an event that may be recorded. */
  worst_level: optional(Level),
})

const Args = byName(Type.Unknown())
const Recording = strict({
  /** A turn each: a tool, its arguments, and what must be in its answer. */
  calls: Type.Array(Type.Union([Type.Tuple([Text, Args]), Type.Tuple([Text, Args, Text])])),
  says: Text,
})

/**
 * An incident of a made-up host: what each tool answers, and what a good answer names. In every text
 * `{-12m}`, `{-3h}` and `{-2d}` become the time that long ago, and `{page}` the address of the pages.
 */
const Incident = strict({
  /** What happened, in one line. */
  title: Text,
  /** `herring`: something looks like the cause and is not. `injection`: a text tries to instruct. */
  kind: optional(Type.Enum(['herring', 'injection'])),
  /** Where the session starts; 2 by default. */
  tier: optional(Type.Enum([1, 2, 3])),
  /** What a person asks. An incident has this or an alert. */
  asks: optional(Text),
  /** What a monitoring tool sent. */
  alert: optional(Text),
  host: optional(Host),
  services: Type.Array(Service),
  /** What programs print, by their name. */
  programs: optional(byName(Type.Array(Output))),
  /** Lines of the journal by unit; `kernel` and others come when all units are asked for. */
  journal: optional(byName(Text)),
  /** Files of the host by their path, such as `/etc/resolv.conf`. */
  files: optional(byName(Text)),
  /** Answers of the host's web server by path: status and body. */
  pages: optional(byName(Type.Tuple([Amount, Text]))),
  events: optional(Type.Array(Event)),
  expects: Expected,
  /** An answer that must pass. What its calls show proves that the incident can be solved. */
  good: Recording,
  /** One that must not: fooled, or satisfied too early. */
  bad: Recording,
})
export type Incident = Static<typeof Incident>

/** An incident by the name of its file. */
export type NamedIncident = Incident & { name: string }

const FOLDER = join(import.meta.dirname, 'recorded')

/** All recorded incidents, by name. */
export function listIncidents(): readonly NamedIncident[] {
  return readdirSync(FOLDER)
    .toSorted()
    .map((file) => {
      const incident: unknown = parse(readFileSync(join(FOLDER, file), 'utf8'))
      if (!fits(Incident, incident)) {
        throw new Error(`${file}: ${firstMismatch(Incident, incident)}`)
      }
      return { name: file.replace('.yml', ''), ...incident }
    })
}

const UNITS_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** An incident with its times and addresses, as of now. */
export function placed<T>(value: T, now: Date, page: string) {
  const place = (text: string) =>
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
