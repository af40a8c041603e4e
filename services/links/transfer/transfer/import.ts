import type { Executor } from '../../../../db/client.ts'
import type { Link } from '../../../../db/links/names/links.ts'
import { transferQueries as q, type NewLink } from '../../../../db/links/transfer/transfer.ts'
import { Fault } from '../../../../kernel/fault.ts'
import { validate } from '../../../../kernel/validate.ts'
import type { ChangeTools } from '../../../audit.ts'
import { LinkUpdate, MAX_ALIASES } from '../../names/links/input.ts'
import {
  checkEdit,
  differences,
  NEW_LINK,
  replaceLink,
  type LinkParts,
} from '../../names/links/links.ts'
import { mayLeadHere, refuseLoop, type UrlWriter } from '../../names/links/loop.ts'
import { slugTaken, takenOf } from '../../names/links/new.ts'
import { checkSlug, isSlug } from '../../names/links/slug.ts'
import { checkScheme } from '../../names/links/schemes.ts'
import { checkPlaces } from '../../names/links/target.ts'
import { writeTexts } from '../../names/lists/texts.ts'
import { countTags, writeHiddenTags } from '../../names/tags.ts'
import type { Caller } from '../../people/users/groups.ts'
import { writeWords } from '../../names/lists/words.ts'
import { announce, namesOf } from '../../names/aliases/names.ts'
import { openPeople, type People, type PeopleOptions } from './people.ts'
import type { ImportLine, LinkData } from './records.ts'

/** How links are imported. A dry run only reports what would be done. */
interface ImportOptions extends PeopleOptions {
  /** Whether existing links that differ are replaced. */
  update: boolean
  importer: Importer
}

/** Who imports: an admin, or a command on this machine. Either may read and change every link. */
interface Importer {
  email: string
  /** Called when a link is changed: a dry run adds no user. */
  user: () => Promise<Caller>
}

type Outcome = 'created' | 'updated' | 'unchanged' | 'conflict' | 'refused'

/** What was done with a line, or in a dry run would be, and why. */
export interface LineReport {
  line: number
  slug: string
  outcome: Outcome
  message: string
}

/** The number of lines by outcome, and of users that were created. */
export type ImportTotals = Readonly<Record<Outcome | 'users', number>>

/** What an import works with. */
export interface ImportTools extends LinkParts, ChangeTools {
  now: () => Date
}

interface Import {
  tools: ImportTools
  options: ImportOptions
  people: People
  /** The links that a dry run would have written, by slug. */
  imagined: Map<string, ExistingLink>
  /** The slugs and aliases that a dry run would have given to links. */
  imaginedNames: Set<string>
  /** The names in the file of the links with these slugs. */
  names: Map<string, string>
}

type ExistingLink = Omit<Link, 'owners'>

type LineResult = Pick<LineReport, 'outcome' | 'message'>

/** The urls of an import are checked as those that an admin writes. */
const WRITER: UrlWriter = { ids: [], role: 'admin' }

/** The number of lines that are looked up, and links that are stored, by one statement. */
const BATCH_SIZE = 500

/**
 * Plans made for few links are bad for many: statistics are renewed after this many new links, and
 * again each time their number has doubled.
 */
const FIRST_RENEWAL = 500

/**
 * Imports links by the rules of the API, in batches, and reports each line in the order of the
 * file. Existing links stay as they are without `update`, so that a file can be imported again. A
 * line is committed before it is reported.
 */
export async function importLinks(
  tools: ImportTools,
  options: ImportOptions,
  lines: AsyncIterable<ImportLine>,
  report: (reports: readonly LineReport[]) => Promise<void>,
): Promise<ImportTotals> {
  const people = openPeople(tools, options, tools.now)
  const state: Import = {
    tools,
    options,
    people,
    imagined: new Map(),
    imaginedNames: new Set(),
    names: new Map(),
  }
  const totals = { created: 0, updated: 0, unchanged: 0, conflict: 0, refused: 0 }
  let batch = new Map<string, ImportLine>()
  let renewAt = FIRST_RENEWAL

  async function flush() {
    people.forgetUnknown()
    const reports = await importBatch(state, [...batch.values()])
    for (const { outcome } of reports) totals[outcome] += 1
    batch = new Map()
    await report(reports)
    if (totals.created < renewAt) return
    await tools.db.renewStatistics()
    renewAt = 2 * totals.created
  }

  for await (const line of lines) {
    const key = line.slug || `line ${line.line}`
    // A second line with the same slug is compared with the link that the first one created.
    if (batch.has(key) || batch.size >= BATCH_SIZE) await flush()
    batch.set(key, line)
  }
  if (batch.size > 0) await flush()
  return { ...totals, users: people.created.size }
}

async function importBatch(
  state: Import,
  lines: readonly ImportLine[],
): Promise<readonly LineReport[]> {
  const slugs = lines.map(({ slug }) => slug).filter(isSlug)
  const found = await q.findLinksBySlugs(state.tools.db, { slugs, limit: slugs.length })
  const existing = new Map<string, ExistingLink>(found.map((link) => [link.slug, link]))
  const pending: NewLink[] = []
  const reports: LineReport[] = []
  for (const line of lines) {
    const there = state.imagined.get(line.slug) ?? existing.get(line.slug)
    const result = await importLine(state, line, there, pending)
    reports.push({ line: line.line, slug: line.slug, ...result })
  }
  const { faults, notes } = await storeLinks(state, pending)
  return reports.map((made) => {
    const fault = faults.get(made.slug)
    if (fault !== undefined) return { ...made, ...resultOf(fault) }
    return { ...made, message: joined(made.message, notes.get(made.slug) ?? '') }
  })
}

async function importLine(
  state: Import,
  line: ImportLine,
  existing: ExistingLink | undefined,
  pending: NewLink[],
): Promise<LineResult> {
  try {
    const data = line.read(state.tools.now())
    checkSlug(line.slug)
    const first = state.names.get(line.slug) ?? line.name
    if (first !== line.name) {
      // With `update` the second would replace the first.
      const message = `the file has "${first}" before, which is the same name here`
      return { outcome: 'conflict', message: joined(data.note, message) }
    }
    const { title, description, tags } = existing ?? {}
    const given = Object.entries(data.fields).filter(([, value]) => value !== undefined)
    const fields = { title, description, tags, ...Object.fromEntries(given) }
    const input = withoutSlug(validate(LinkUpdate, fields), line.slug)
    if (line.name !== undefined) state.names.set(line.slug, line.name)
    if (existing !== undefined) return await compareLine(state, data.note, input, existing)
    const created = { ...NEW_LINK, ...input }
    checkPlaces(created)
    checkScheme(created, state.tools.schemes())
    const { note, ...members } = await state.people.of(data)
    const times = timesOf(data, state.tools.now())
    pending.push({ ...created, slug: line.slug, ...times, ...members })
    return { outcome: 'created', message: joined(data.note, note) }
  } catch (error) {
    if (error instanceof Fault) return resultOf(error)
    throw error
  }
}

/** Aliases that don't name the slug again, as the API stores them. */
function withoutSlug(input: LinkUpdate, slug: string): LinkUpdate {
  const { aliases } = input
  if (aliases === undefined) return input
  return { ...input, aliases: aliases.filter((alias) => alias !== slug) }
}

function resultOf({ code, message }: Fault): LineResult {
  return { outcome: code === 'SLUG_CONFLICT' ? 'conflict' : 'refused', message }
}

/** The times of a new link: no link is changed before it is created. */
function timesOf(data: LinkData, now: Date) {
  const created_at = data.created_at ?? data.updated_at ?? now
  const { updated_at = created_at } = data
  return { created_at, updated_at: updated_at < created_at ? created_at : updated_at }
}

async function compareLine(
  { tools, options, imagined, imaginedNames }: Import,
  note: string,
  input: LinkUpdate,
  existing: ExistingLink,
): Promise<LineResult> {
  const differing = Object.keys(differences(existing, input))
  if (differing.length === 0) return { outcome: 'unchanged', message: note }
  const what = `${differing.join(', ')} ${differing.length === 1 ? 'differs' : 'differ'}`
  if (!options.update) {
    const message = `the link is there, and its ${what}; an import with update replaces it`
    return { outcome: 'conflict', message: joined(note, message) }
  }
  if (options.dryRun) {
    const changed = { ...existing, ...input }
    await tools.db.transaction(async (tx) => {
      await checkEdit(tx, tools, WRITER, existing, changed)
      const names = new Set(namesOf(changed)).difference(new Set(namesOf(existing)))
      const taken = await takenOf(tx, [...names])
      if (taken.size > 0 || !names.isDisjointFrom(imaginedNames)) throw slugTaken('aliases')
    })
    for (const name of namesOf(changed)) imaginedNames.add(name)
    imagined.set(existing.slug, changed)
  } else {
    await replaceLink(tools, await options.importer.user(), existing.id, input, tools.now())
  }
  return { outcome: 'updated', message: joined(note, `its ${what}`) }
}

/**
 * Stores new links, or remembers them in a dry run. Gives by slug the faults of others, and notes
 * about links without some of their aliases.
 */
async function storeLinks(
  { tools: { db, ownHosts, now }, options, imagined, imaginedNames }: Import,
  links: readonly NewLink[],
) {
  const faults = new Map<string, Fault>()
  const notes = new Map<string, string>()
  // Links that lead here are stored one at a time: the next one may close a loop with this one.
  const groups = Map.groupBy(links, ({ slug, url }) => (mayLeadHere(ownHosts, url) ? slug : ''))
  for (const group of groups.values()) {
    try {
      const stored = await db.transaction(async (tx) => {
        for (const link of group) await refuseLoop(tx, ownHosts, WRITER, link)
        if (options.dryRun) return await namesLeft(tx, imaginedNames, group)
        return await addLinks(tx, group, options.importer.email, now())
      })
      const taken = new Set(group).difference(new Set(stored.created))
      for (const { slug } of taken) faults.set(slug, slugTaken())
      for (const [slug, left] of Map.groupBy(stored.left, (row) => row.slug)) {
        const aliases = left.map(({ alias }) => alias).join(', ')
        notes.set(slug, `without ${aliases}, which other links have`)
      }
      if (!options.dryRun) continue
      for (const link of stored.created) imagined.set(link.slug, { ...link, id: '' })
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      for (const { slug } of group) faults.set(slug, error)
    }
  }
  return { faults, notes }
}

/** What `addLinks` would give. Notes the names that it would give to links. */
async function namesLeft(tx: Executor, given: Set<string>, links: readonly NewLink[]) {
  const stored = await takenOf(tx, links.flatMap(namesOf))
  const isTaken = (name: string) => stored.has(name) || given.has(name)
  const created = links.filter(({ slug }) => !isTaken(slug))
  for (const { slug } of created) given.add(slug)
  const left: { slug: string; alias: string }[] = []
  for (const { slug, aliases } of created.toSorted(bySlug)) {
    for (const alias of aliases) {
      if (isTaken(alias)) left.push({ slug, alias })
      else given.add(alias)
    }
  }
  return { created, left }
}

function bySlug(a: NewLink, b: NewLink): number {
  return a.slug < b.slug ? -1 : 1
}

/**
 * Adds links whose slugs are free. Gives those that were added, and the aliases that were left out
 * because other links have them.
 */
async function addLinks(tx: Executor, links: readonly NewLink[], actor: string, at: Date) {
  const sorted = links.toSorted(bySlug)
  const row = { links: sorted, actor, at, limit: sorted.length }
  const added = new Set((await q.addImportedLinks(tx, row)).map(({ slug }) => slug))
  const created = links.filter(({ slug }) => added.has(slug))
  const named = created.filter(({ aliases }) => aliases.length > 0)
  const limit = MAX_ALIASES * named.length
  const left = limit > 0 ? await q.addImportedAliases(tx, { links: named, limit }) : []
  await writeHiddenTags(tx, [...added])
  await writeWords(tx, created)
  await writeTexts(tx, [...added])
  await countTags(tx, [], created)
  await announce(tx, ...created)
  return { created, left }
}

function joined(...notes: readonly string[]) {
  return notes.filter((note) => note !== '').join('; ')
}
