import type { Database } from '../db/client.ts'
import { transferQueries } from '../db/links/transfer.ts'
import { exportLinks } from '../services/links/export.ts'
import { FORMATS, type Format } from '../services/links/import-source.ts'
import { DONE, fail, FAILED, UsageError, type Output } from './command.ts'
import { readFlags } from './action-arguments.ts'

export const EXPORT_USAGE = 'gatehouse export [--format csv|jsonl] [--public-only]'

const FLAGS = { format: { type: 'string' }, 'public-only': { type: 'boolean' } } as const

/** The arguments of `export`. */
interface Parsed {
  readonly format: Format
  readonly publicOnly: boolean
}

/** Reads the arguments; throws `UsageError` for those that are wrong. */
export function parseExport(args: readonly string[]): Parsed {
  const { positionals, flags } = readFlags(args, FLAGS)
  if (positionals.length > 0) throw new UsageError('Too many arguments')
  return { format: readFormat(flags.format) ?? 'csv', publicOnly: flags['public-only'] === true }
}

/** A format by its name; throws `UsageError` for one that there is not. */
export function readFormat(text: string | undefined): Format | undefined {
  if (text === undefined) return undefined
  const format = FORMATS.find((known) => known === text)
  if (format === undefined) throw new UsageError(`--format must be ${FORMATS.join(' or ')}`)
  return format
}

/**
 * `gatehouse export`: all links on stdout. It fails when the format can't hold one of them. golink's
 * format has no visibility, and golink shows every link to everybody: no private or secure link is
 * ever written in it.
 */
export async function runExport(
  args: readonly string[],
  db: Database,
  output: Output,
): Promise<number> {
  const { format, publicOnly } = parseExport(args)
  const isGolink = format === 'jsonl'
  const unsayable =
    isGolink && !publicOnly ? (await transferQueries.countHiddenLinks(db, {})).links : 0
  if (unsayable > 0) {
    const ways = '--public-only leaves them out, --format csv has everything'
    return fail(output, `${hiddenLinks(unsayable)}, which golink's format can't say; ${ways}`)
  }
  let code = DONE
  let leftOut = 0
  for await (const { lines, left, hidden } of exportLinks(db, format, publicOnly || isGolink)) {
    leftOut += hidden
    for (const line of lines) output.data(line)
    for (const slug of left) {
      code = FAILED
      output.err(`gatehouse: ${slug} is left out: golink has no places such as {1} in a URL`)
    }
    await output.drained?.()
  }
  if (leftOut > 0) output.err(`gatehouse: ${hiddenLinks(leftOut)}, and left out`)
  return code
}

function hiddenLinks(count: number): string {
  return count === 1 ? '1 link is private or secure' : `${count} links are private or secure`
}
