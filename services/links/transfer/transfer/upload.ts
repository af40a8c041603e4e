import { userQueries } from '../../../../db/links/people/users.ts'
import { badRequest, Fault } from '../../../../kernel/fault.ts'
import { MAX_EMAIL_LENGTH, readEmail } from '../../people/users/users.ts'
import type { Caller } from '../../people/users/groups.ts'
import type { ColumnReport } from './columns.ts'
import { readLinks } from './files.ts'
import { importLinks, type ImportTools, type ImportTotals, type LineReport } from './import.ts'
import type { ImportLine, LinkData } from './records.ts'

/** What a file that is sent whole may have. The command takes larger ones. */
export const MAX_FILE_BYTES = 1024 * 1024
export const MAX_FILE_LINKS = 10_000

/** Links of a file that are shown as they would be. */
const PREVIEWED = 10

/** How a file is imported that somebody sends. */
export interface UploadOptions {
  caller: Caller
  takesGroups: boolean
  dryRun: boolean
  update: boolean
  createUsers: boolean
  /** E-mail address of who owns links without an owner; empty for the caller. */
  owner: string
}

/** A link of a file, as it would be. */
export interface PreviewedLink extends LineReport {
  url: string
  title: string
  tags: readonly string[]
  owner: string
}

/** What became of a file, or in a dry run would. */
export interface UploadReport {
  dry_run: boolean
  /** The program that it is from. */
  source: string
  columns: readonly ColumnReport[]
  totals: ImportTotals
  lines: readonly LineReport[]
  preview: readonly PreviewedLink[]
}

/**
 * Imports a file that was sent whole. Throws the Fault of a file that cannot be read before
 * anything is written.
 */
export async function importFile(
  tools: ImportTools,
  bytes: Uint8Array,
  { caller, owner, ...options }: UploadOptions,
): Promise<UploadReport> {
  if (bytes.length > MAX_FILE_BYTES) throw tooLarge(`${MAX_FILE_BYTES / 1024} KiB`)
  await countLinks(bytes)
  const importer = { email: caller.email, user: () => Promise.resolve(caller) }
  const all = { ...options, importer, owner: await ownerOf(tools, owner || caller.email, options) }
  const first: ImportLine[] = []
  const lines: LineReport[] = []
  const file = readLinks(whole(bytes))
  async function* noted() {
    for await (const line of file.lines) {
      if (first.length < PREVIEWED) first.push(line)
      yield line
    }
  }
  const totals = await importLinks(tools, all, noted(), (reports) => {
    lines.push(...reports)
    return Promise.resolve()
  })
  const now = tools.now()
  const preview = lines.slice(0, PREVIEWED).map((report, at) => previewOf(report, first[at], now))
  const { source = '', columns } = file
  return { dry_run: options.dryRun, source, columns, totals, lines, preview }
}

/** Reads the whole file once, so that one with too many links changes nothing. */
async function countLinks(bytes: Uint8Array): Promise<void> {
  let count = 0
  for await (const _line of readLinks(whole(bytes)).lines) {
    count += 1
    if (count > MAX_FILE_LINKS) throw tooLarge(`${MAX_FILE_LINKS.toLocaleString('en')} links`)
  }
}

function tooLarge(limit: string): Fault {
  const message = `the file has more than ${limit}; gatehouse import takes it`
  return new Fault(413, 'BODY_TOO_LARGE', message, { field: 'file' })
}

async function* whole(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function ownerOf(
  { db }: ImportTools,
  text: string,
  { createUsers }: Pick<UploadOptions, 'createUsers'>,
): Promise<string> {
  const email = readEmail(text)
  if (email === undefined) {
    const form = `an e-mail address of ${MAX_EMAIL_LENGTH} characters at most`
    throw badRequest(`owner must be ${form}`, 'owner')
  }
  const known = createUsers || (await userQueries.findUserByEmail(db, { email })) !== undefined
  if (!known) throw badRequest(`no user has the e-mail address ${email}`, 'owner')
  return email
}

/** A link as its line says; a line that cannot be read has its slug alone. */
function previewOf(report: LineReport, line: ImportLine | undefined, now: Date): PreviewedLink {
  const { fields, owner = '' } = dataOf(line, now)
  const word = (name: string) => String(fields?.[name] ?? '')
  const tags = fields?.['tags']
  return {
    ...report,
    url: word('url'),
    title: word('title'),
    tags: Array.isArray(tags) ? tags.map(String) : [],
    owner,
  }
}

function dataOf(line: ImportLine | undefined, now: Date): Partial<LinkData> {
  try {
    return line?.read(now) ?? {}
  } catch (error) {
    if (error instanceof Fault) return {}
    throw error
  }
}
