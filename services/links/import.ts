import { Fault } from '../../kernel/fault.ts'
import { validate } from '../../kernel/validate.ts'
import { transferQueries, type NewLink } from '../../db/links/transfer.ts'
import type { Link } from '../../db/links/links.ts'
import type { User } from '../../db/links/users.ts'
import { createImported, IMPORTER } from './import-batch.ts'
import type { ImportedLink, ImportLine } from './import-line.ts'
import { openPeople, type People, type PeopleOptions } from './import-people.ts'
import { LinkUpdate } from './link-input.ts'
import { replaceLink, type LinkParts } from './links.ts'
import { refuseLoop } from './loop.ts'
import { checkSlug, isSlug } from './slug.ts'
import { ensureUser, OPERATOR_EMAIL } from './users.ts'

/** How an import goes about it. `dryRun` only says what would be done. */
export interface ImportOptions extends PeopleOptions {
  /** Whether a link that is there with other content is replaced. */
  readonly update: boolean
}

export type Outcome = 'created' | 'updated' | 'unchanged' | 'conflict' | 'refused'

/** What became of a line, or in a dry run would; the message says why, or what else there is to know. */
export interface LineReport {
  readonly line: number
  readonly slug: string
  readonly outcome: Outcome
  readonly message: string
}

/** How many lines came to what, and how many people became users. */
export type ImportTotals = Readonly<Record<Outcome | 'users', number>>

/** What an import works with. */
export interface ImportTools extends LinkParts {
  readonly now: () => Date
}

/** Lines that are looked up, and links that are made, by one statement. */
const BATCH = 500

/** Plans for few links are bad ones for many, so statistics are renewed at this many, and each time at twice as many. */
const FIRST_RENEWAL = 500

/**
 * Imports links by the rules of the API, in batches, and reports each line in the file's order. A link
 * that is there stays as it is unless `update` says otherwise, so that a file can be imported again.
 * What was reported is committed, whatever comes after it.
 */
export async function importLinks(
  tools: ImportTools,
  options: ImportOptions,
  lines: AsyncIterable<ImportLine>,
  report: (reports: readonly LineReport[]) => Promise<void>,
): Promise<ImportTotals> {
  const people = openPeople(tools.db, options, tools.now)
  const totals = { created: 0, updated: 0, unchanged: 0, conflict: 0, refused: 0 }
  /** What a dry run would have left of each slug. */
  const imagined = new Map<string, Link>()
  let batch = new Map<string, ImportLine>()
  let renewAt = FIRST_RENEWAL

  async function flush(): Promise<void> {
    people.forgetNobody()
    const reports = await importBatch({ tools, options, people, imagined }, [...batch.values()])
    for (const { outcome } of reports) totals[outcome] += 1
    batch = new Map()
    await report(reports)
    if (totals.created < renewAt) return
    await tools.db.renewStatistics()
    renewAt = 2 * totals.created
  }
  for await (const line of lines) {
    const key = 'problem' in line ? `line ${line.line}` : line.slug
    // A second line with one slug is compared with what the first one made.
    if (batch.has(key) || batch.size >= BATCH) await flush()
    batch.set(key, line)
  }
  if (batch.size > 0) await flush()
  return { ...totals, users: people.created }
}

interface Work {
  readonly tools: ImportTools
  readonly options: ImportOptions
  readonly people: People
  readonly imagined: Map<string, Link>
}

async function importBatch(
  work: Work,
  lines: readonly ImportLine[],
): Promise<readonly LineReport[]> {
  const { tools, options, imagined } = work
  const slugs = lines.map(({ slug }) => slug).filter(isSlug)
  const found = await transferQueries.findLinksBySlugs(tools.db, { slugs, limit: slugs.length })
  const existing = new Map(found.map((link) => [link.slug, link]))
  const fresh: NewLink[] = []
  const reports: LineReport[] = []
  for (const line of lines) {
    const link = imagined.get(line.slug) ?? existing.get(line.slug)
    const result = await importLine(work, line, link)
    if ('fresh' in result) fresh.push(result.fresh)
    const { outcome, message } = result
    reports.push({ line: line.line, slug: line.slug, outcome, message })
  }
  if (options.dryRun) {
    for (const link of fresh) imagined.set(link.slug, { ...link, id: '', owners: [] })
    return reports
  }
  const refused = await createImported(tools, fresh, tools.now())
  return reports.map((made) => {
    const reason = made.outcome === 'created' ? refused.get(made.slug) : undefined
    if (reason === undefined) return made
    const outcome = reason.code === 'SLUG_CONFLICT' ? 'conflict' : 'refused'
    return { ...made, outcome, message: reason.message }
  })
}

type LineResult = Pick<LineReport, 'outcome' | 'message'> & { readonly fresh?: NewLink }

async function importLine(
  work: Work,
  line: ImportLine,
  existing: Link | undefined,
): Promise<LineResult> {
  if ('problem' in line) return { outcome: 'refused', message: line.problem }
  try {
    checkSlug(line.slug)
    // Fields that the line does not have stay as they are.
    const { title, description, tags } = existing ?? {}
    const input = validate(LinkUpdate, { title, description, tags, ...line.fields })
    return existing === undefined
      ? await createLine(work, line, input)
      : await compareLine(work, line, input, existing)
  } catch (error) {
    if (error instanceof Fault) return { outcome: 'refused', message: error.message }
    throw error
  }
}

async function createLine(
  { tools, options, people }: Work,
  line: ImportedLink,
  input: LinkUpdate,
): Promise<LineResult> {
  const { db, ownHosts, now } = tools
  if (options.dryRun && ownHosts(new URL(input.url))) {
    const fields = { url: input.url, append_path: input.append_path ?? false }
    await db.transaction((tx) => refuseLoop(tx, ownHosts, IMPORTER, line.slug, fields))
  }
  const members = await people.of(line)
  if ('problem' in members) return { outcome: 'refused', message: members.problem }
  const { owners, recipients, note } = members
  const created_at = line.created_at ?? line.updated_at ?? now()
  const updated_at = line.updated_at ?? created_at
  const fresh: NewLink = {
    ...input,
    slug: line.slug,
    visibility: input.visibility ?? 'public',
    append_path: input.append_path ?? false,
    created_at,
    updated_at: updated_at < created_at ? created_at : updated_at,
    owners,
    recipients,
  }
  return { outcome: 'created', message: joined(line.note, note), fresh }
}

async function compareLine(
  { tools, options, imagined }: Work,
  line: ImportedLink,
  input: LinkUpdate,
  existing: Link,
): Promise<LineResult> {
  const differing = differences(existing, input)
  if (differing.length === 0) return { outcome: 'unchanged', message: line.note }
  const what = `${differing.join(', ')} ${differing.length === 1 ? 'differs' : 'differ'}`
  if (!options.update) {
    return {
      outcome: 'conflict',
      message: joined(line.note, `the link is there, and its ${what}; --update replaces it`),
    }
  }
  if (options.dryRun) {
    const { visibility = existing.visibility, append_path = existing.append_path } = input
    imagined.set(line.slug, { ...existing, ...input, visibility, append_path })
  } else {
    const operator = await operatorOf(tools)
    await replaceLink(tools, operator, existing.id, input, tools.now())
  }
  return { outcome: 'updated', message: joined(line.note, `its ${what}`) }
}

/** Who works on this machine may change every link, whatever role the pages show. */
async function operatorOf({ db, now }: ImportTools): Promise<User> {
  return { ...(await ensureUser(db, OPERATOR_EMAIL, 'admin', now())), role: 'admin' }
}

/** The fields that the line has a say in and says otherwise. Who owns a link is no content of it. */
function differences(existing: Link, input: LinkUpdate): readonly string[] {
  return (['url', 'title', 'description', 'tags', 'visibility', 'append_path'] as const).filter(
    (name) =>
      input[name] !== undefined && JSON.stringify(input[name]) !== JSON.stringify(existing[name]),
  )
}

function joined(...notes: readonly string[]): string {
  return notes.filter((note) => note !== '').join('; ')
}
