import type { Executor } from '../../../db/client.ts'
import { QueryError } from '../../../db/errors.ts'
import { linkQueries, type Link } from '../../../db/links/links.ts'
import { transferQueries as q, type NewLink } from '../../../db/links/transfer.ts'
import type { User } from '../../../db/links/users.ts'
import { Fault } from '../../../kernel/fault.ts'
import { validate } from '../../../kernel/validate.ts'
import { linksFault } from '../faults.ts'
import { LinkUpdate } from '../link-input.ts'
import { differences, replaceLink, type LinkParts } from '../links.ts'
import { refuseLoop, type UrlWriter } from '../loop.ts'
import { checkSlug, isSlug } from '../slug.ts'
import { countTags, writeHiddenTags } from '../tags.ts'
import { ensureUser, OPERATOR_EMAIL } from '../users.ts'
import { openPeople, type People, type PeopleOptions } from './people.ts'
import type { ImportedLink, ImportLine } from './records.ts'

/** How links are imported. A dry run only reports what would be done. */
export interface ImportOptions extends PeopleOptions {
  /** Whether existing links that differ are replaced. */
  readonly update: boolean
}

export type Outcome = 'created' | 'updated' | 'unchanged' | 'conflict' | 'refused'

/** What was done with a line, or in a dry run would be, and why. */
export interface LineReport {
  readonly line: number
  readonly slug: string
  readonly outcome: Outcome
  readonly message: string
}

/** The number of lines by outcome, and of users that were created. */
export type ImportTotals = Readonly<Record<Outcome | 'users', number>>

/** What an import works with. */
export interface ImportTools extends LinkParts {
  readonly now: () => Date
}

interface Import {
  readonly tools: ImportTools
  readonly options: ImportOptions
  readonly people: People
  /** The links that a dry run would have written, by slug. */
  readonly imagined: Map<string, Link>
}

type LineResult = Pick<LineReport, 'outcome' | 'message'>

/** An import is run on this machine, and may read every link. */
const IMPORTER: UrlWriter = { id: null, role: 'admin' }

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
  const people = openPeople(tools.db, options, tools.now)
  const state: Import = { tools, options, people, imagined: new Map() }
  const totals = { created: 0, updated: 0, unchanged: 0, conflict: 0, refused: 0 }
  let batch = new Map<string, ImportLine>()
  let renewAt = FIRST_RENEWAL

  async function flush(): Promise<void> {
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
    const key = 'problem' in line ? `line ${line.line}` : line.slug
    // A second line with the same slug is compared with the link that the first one created.
    if (batch.has(key) || batch.size >= BATCH_SIZE) await flush()
    batch.set(key, line)
  }
  if (batch.size > 0) await flush()
  return { ...totals, users: people.created }
}

async function importBatch(
  state: Import,
  lines: readonly ImportLine[],
): Promise<readonly LineReport[]> {
  const { tools, imagined } = state
  const slugs = lines.map(({ slug }) => slug).filter(isSlug)
  const found = await q.findLinksBySlugs(tools.db, { slugs, limit: slugs.length })
  const existing = new Map([...found.map((link) => [link.slug, link] as const), ...imagined])
  const pending: NewLink[] = []
  const reports: LineReport[] = []
  for (const line of lines) {
    const result = await importLine(state, line, existing.get(line.slug), pending)
    reports.push({ line: line.line, slug: line.slug, ...result })
  }
  const faults = await storeLinks(tools, pending)
  return reports.map((made) => {
    const fault = made.outcome === 'created' ? faults.get(made.slug) : undefined
    return fault === undefined ? made : { ...made, ...resultOf(fault) }
  })
}

async function importLine(
  state: Import,
  line: ImportLine,
  existing: Link | undefined,
  pending: NewLink[],
): Promise<LineResult> {
  if ('problem' in line) return { outcome: 'refused', message: line.problem }
  try {
    checkSlug(line.slug)
    const { title, description, tags } = existing ?? {}
    const given = Object.entries(line.fields).filter(([, value]) => value !== undefined)
    const fields = { title, description, tags, ...Object.fromEntries(given) }
    const input = validate(LinkUpdate, fields)
    return existing === undefined
      ? await createLine(state, line, input, pending)
      : await compareLine(state, line, input, existing)
  } catch (error) {
    if (error instanceof Fault) return resultOf(error)
    throw error
  }
}

function resultOf({ code, message }: Fault): LineResult {
  return { outcome: code === 'SLUG_CONFLICT' ? 'conflict' : 'refused', message }
}

async function createLine(
  { tools, options, people, imagined }: Import,
  line: ImportedLink,
  input: LinkUpdate,
  pending: NewLink[],
): Promise<LineResult> {
  const { db, ownHosts, now } = tools
  const { owners, recipients, note } = await people.of(line)
  const created_at = line.created_at ?? line.updated_at ?? now()
  const updated_at = line.updated_at ?? created_at
  const link: NewLink = {
    ...input,
    slug: line.slug,
    visibility: input.visibility ?? 'public',
    append_path: input.append_path ?? false,
    created_at,
    updated_at: updated_at < created_at ? created_at : updated_at,
    owners,
    recipients,
  }
  const leadsHere = ownHosts(new URL(link.url))
  if (options.dryRun) {
    if (leadsHere) {
      await db.transaction((tx) => refuseLoop(tx, ownHosts, IMPORTER, link.slug, link))
    }
    imagined.set(link.slug, { ...link, id: '', owners: [] })
  } else if (leadsHere) {
    // Stored at once: the next link may close a loop with this one.
    const fault = (await storeLinks(tools, [link])).get(link.slug)
    if (fault !== undefined) throw fault
  } else pending.push(link)
  return { outcome: 'created', message: joined(line.note, note) }
}

async function compareLine(
  { tools, options, imagined }: Import,
  line: ImportedLink,
  input: LinkUpdate,
  existing: Link,
): Promise<LineResult> {
  const differing = Object.keys(differences(existing, input))
  if (differing.length === 0) return { outcome: 'unchanged', message: line.note }
  const what = `${differing.join(', ')} ${differing.length === 1 ? 'differs' : 'differ'}`
  if (!options.update) {
    const message = `the link is there, and its ${what}; --update replaces it`
    return { outcome: 'conflict', message: joined(line.note, message) }
  }
  if (options.dryRun) {
    const { visibility = existing.visibility, append_path = existing.append_path } = input
    imagined.set(line.slug, { ...existing, ...input, visibility, append_path })
  } else {
    await replaceLink(tools, await operatorOf(tools), existing.id, input, tools.now())
  }
  return { outcome: 'updated', message: joined(line.note, `its ${what}`) }
}

/**
 * Stores links in one transaction, of those that lead here one at a time. Gives the faults by slug.
 * A link that the database refuses does not keep others from being stored.
 */
async function storeLinks(
  tools: ImportTools,
  links: readonly NewLink[],
): Promise<ReadonlyMap<string, Fault>> {
  const { db, ownHosts, now } = tools
  const [first] = links
  if (first === undefined) return new Map()
  try {
    return await db.transaction(async (tx) => {
      await refuseLoop(tx, ownHosts, IMPORTER, first.slug, first)
      return addLinks(tx, links, now())
    })
  } catch (error) {
    if (!(error instanceof QueryError)) throw error
    if (links.length === 1) {
      return new Map([[first.slug, linksFault('BAD_REQUEST', 'the database does not take it')]])
    }
    const faults: [string, Fault][] = []
    for (const link of links) faults.push(...(await storeLinks(tools, [link])))
    return new Map(faults)
  }
}

/** Gives the faults of links whose slug is taken. */
async function addLinks(
  tx: Executor,
  links: readonly NewLink[],
  at: Date,
): Promise<ReadonlyMap<string, Fault>> {
  const sorted = links.toSorted((a, b) => (a.slug < b.slug ? -1 : 1))
  const row = { links: sorted, actor: OPERATOR_EMAIL, at, limit: sorted.length }
  const added = new Set((await q.addImportedLinks(tx, row)).map(({ slug }) => slug))
  const created = links.filter(({ slug }) => added.has(slug))
  const hidden = created.filter(({ visibility }) => visibility !== 'public')
  await writeHiddenTags(
    tx,
    hidden.map(({ slug }) => slug),
  )
  await countTags(tx, [], created)
  await linkQueries.announceLinks(tx, { slugs: [...added] })
  const taken = links.filter(({ slug }) => !added.has(slug))
  const fault = linksFault('SLUG_CONFLICT', 'slug already taken', 'slug')
  return new Map(taken.map(({ slug }) => [slug, fault]))
}

/** People on this machine may change every link, whatever role the operator has on the pages. */
async function operatorOf({ db, now }: ImportTools): Promise<User> {
  return { ...(await ensureUser(db, OPERATOR_EMAIL, 'admin', now())), role: 'admin' }
}

function joined(...notes: readonly string[]): string {
  return notes.filter((note) => note !== '').join('; ')
}
