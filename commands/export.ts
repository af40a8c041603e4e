import type { Database } from '../db/client.ts'
import { exportLinks } from '../services/links/export.ts'
import { FORMATS, type Format } from '../services/links/import-source.ts'
import { DONE, FAILED, UsageError, type Output } from './command.ts'
import { readFlags } from './action-arguments.ts'

export const EXPORT_USAGE = 'gatehouse export [--format csv|jsonl]'

const FLAGS = { format: { type: 'string' } } as const

/** Reads the arguments; throws `UsageError` for those that are wrong. */
export function parseExport(args: readonly string[]): { readonly format: Format } {
  const { positionals, flags } = readFlags(args, FLAGS)
  if (positionals.length > 0) throw new UsageError('Too many arguments')
  return { format: readFormat(flags.format) ?? 'csv' }
}

/** A format by its name; throws `UsageError` for one that there is not. */
export function readFormat(text: string | undefined): Format | undefined {
  if (text === undefined) return undefined
  const format = FORMATS.find((known) => known === text)
  if (format === undefined) throw new UsageError(`--format must be ${FORMATS.join(' or ')}`)
  return format
}

/** `gatehouse export`: all links on stdout. It fails when the format can't hold one of them. */
export async function runExport(
  args: readonly string[],
  db: Database,
  output: Output,
): Promise<number> {
  const { format } = parseExport(args)
  let code = DONE
  for await (const { lines, left } of exportLinks(db, format)) {
    for (const line of lines) output.data(line)
    for (const slug of left) {
      code = FAILED
      output.err(`gatehouse: ${slug} is left out: golink has no places such as {1} in a URL`)
    }
    await output.drained?.()
  }
  return code
}
