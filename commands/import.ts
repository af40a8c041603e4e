import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { Database } from '../db/client.ts'
import { userQueries } from '../db/links/users.ts'
import type { Log } from '../kernel/log.ts'
import {
  importLinks,
  type ImportOptions,
  type ImportTotals,
  type LineReport,
  type Outcome,
} from '../services/links/import.ts'
import { readLinks, UnreadableFile, type Format } from '../services/links/import-source.ts'
import type { OwnHosts } from '../services/links/loop.ts'
import { readEmail } from '../services/links/users.ts'
import { readFlags } from './action-arguments.ts'
import { DONE, fail, FAILED, UsageError, type Output } from './command.ts'
import { readFormat } from './export.ts'

export const IMPORT_USAGE =
  'gatehouse import FILE|- [--format csv|jsonl] [--dry-run] [--update] [--owner EMAIL]\n' +
  '                   [--create-users] [--json]'

export interface ImportCommandTools {
  readonly db: Database
  readonly now: () => Date
  readonly ownHosts: OwnHosts
  readonly forget: (slug: string) => void
  readonly log: Log
  /** The file's bytes. */
  readonly input: AsyncIterable<Uint8Array>
}

/** The arguments of `import`. */
interface Parsed extends ImportOptions {
  readonly file: string
  readonly format: Format | undefined
  readonly json: boolean
}

const FLAGS = {
  format: { type: 'string' },
  'dry-run': { type: 'boolean' },
  update: { type: 'boolean' },
  owner: { type: 'string' },
  'create-users': { type: 'boolean' },
  json: { type: 'boolean' },
} as const

/** Reads the arguments; throws `UsageError` for those that are wrong. */
export function parseImport(args: readonly string[]): Parsed {
  const { positionals, flags } = readFlags(args, FLAGS)
  const [file = '', ...rest] = positionals
  if (file === '') throw new UsageError('Missing FILE; - is standard input')
  if (rest.length > 0) throw new UsageError('Too many arguments')
  const owner = flags.owner === undefined ? undefined : readEmail(flags.owner)
  if (flags.owner !== undefined && owner === undefined) {
    throw new UsageError('--owner must be an e-mail address')
  }
  return {
    file,
    format: readFormat(flags.format),
    owner,
    dryRun: flags['dry-run'] === true,
    update: flags.update === true,
    createUsers: flags['create-users'] === true,
    json: flags.json === true,
  }
}

/** Opens the file, in the process that was called: the server may not be allowed to read it. */
export async function openImport(args: readonly string[], stdin: Readable): Promise<Readable> {
  const { file } = parseImport(args)
  if (file === '-') return stdin
  return (await open(file)).createReadStream()
}

/** `gatehouse import FILE`: reports each line, then the totals. It fails when a line was not taken. */
export async function runImport(
  args: readonly string[],
  { input, ...tools }: ImportCommandTools,
  output: Output,
): Promise<number> {
  const options = parseImport(args)
  const { owner, json, dryRun } = options
  if (owner !== undefined && !options.createUsers && !(await isUser(tools.db, owner))) {
    const message = `no user has the e-mail address "${owner}"; add one with: gatehouse user add EMAIL`
    return fail(output, message)
  }
  async function report(reports: readonly LineReport[]): Promise<void> {
    for (const line of reports) output.out(json ? JSON.stringify(line) : lineText(line, dryRun))
    await output.drained?.()
  }
  let totals
  try {
    totals = await importLinks(tools, options, readLinks(input, options.format), report)
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error
    return fail(output, error.message)
  }
  output.out(json ? JSON.stringify({ dry_run: dryRun, totals }) : totalsText(totals, dryRun))
  return totals.refused + totals.conflict === 0 ? DONE : FAILED
}

async function isUser(db: Database, email: string): Promise<boolean> {
  return (await userQueries.findUserByEmail(db, { email })) !== undefined
}

/** A line of the report, in columns as far as slugs are short. */
function lineText({ line, slug, outcome, message }: LineReport, dryRun: boolean): string {
  const words = [String(line).padStart(6), wordFor(outcome, dryRun).padEnd(12)]
  return [...words, clean(slug).padEnd(24), clean(message)].join('  ').trimEnd()
}

function totalsText(totals: ImportTotals, dryRun: boolean): string {
  const { users, ...outcomes } = totals
  const counts = Object.entries(outcomes).map(
    ([outcome, count]) => `${wordFor(outcome as Outcome, dryRun)} ${count}`,
  )
  const people = `${dryRun ? 'new users would be' : 'new users'} ${users}`
  const done = [...counts, people].join(', ')
  return dryRun ? `dry run, nothing was changed: ${done}` : done
}

function wordFor(outcome: Outcome, dryRun: boolean): string {
  if (!dryRun || !['created', 'updated'].includes(outcome)) return outcome
  return outcome === 'created' ? 'would create' : 'would update'
}

/** Text of a file on a terminal: no character may command it. */
function clean(text: string): string {
  return text.replaceAll(/\p{C}/gu, '?')
}
