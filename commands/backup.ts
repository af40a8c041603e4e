import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { PassThrough } from 'node:stream'
import type { Database } from '../db/client.ts'
import { copyCluster, removeCopy, copyFolder, hasCluster } from '../db/embedded/cluster.ts'
import { readApplied } from '../db/migrate.ts'
import { openDatabase } from '../db/open.ts'
import { writeBackup } from '../db/transfer/backup-file.ts'
import { openDatabaseSource } from '../db/transfer/source.ts'
import type { Progress } from '../db/transfer/load.ts'
import type { TableContents } from '../db/transfer/source.ts'
import type { ConfigSource } from '../kernel/config.ts'
import type { Log } from '../kernel/log.ts'
import { readFlags } from './action-arguments.ts'
import { DONE, fail, UsageError, type Output, type Surroundings } from './command.ts'
import { controlPath, runRemotely } from './control.ts'
import { TRANSFER_DEADLINE_MS } from './stopped-database.ts'
import { openMeter, reportTables } from './transfer-report.ts'

export const BACKUP_USAGE = 'gatehouse backup FILE [--force] [--json]'

export interface BackupTools extends Pick<Surroundings, 'stopSignal'> {
  readonly config: ConfigSource
  readonly version: string
  readonly now: () => Date
  readonly log: Log
}

const FLAGS = { force: { type: 'boolean' }, json: { type: 'boolean' } } as const

/** Reads the arguments; throws `UsageError` for those that are wrong. */
export function parseBackup(args: readonly string[]): {
  readonly file: string
  readonly force: boolean
  readonly json: boolean
} {
  const { positionals, flags } = readFlags(args, FLAGS)
  const [file = '', ...rest] = positionals
  if (file === '') throw new UsageError('Missing FILE')
  if (rest.length > 0) throw new UsageError('Too many arguments')
  return { file, force: flags.force === true, json: flags.json === true }
}

/**
 * `gatehouse backup FILE`: everything in the database as it is at one moment. Beside a server on the
 * embedded engine it reads a copy that the server makes for it; the file is this process's in any case.
 */
export async function runBackup(
  args: readonly string[],
  tools: BackupTools,
  output: Output,
): Promise<number> {
  const { file, force, json } = parseBackup(args)
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: directory } = tools.config.current
  if (!force && existsSync(file)) {
    return fail(output, `${file} is there already; --force replaces it`)
  }
  // Before a server copies its database for nothing.
  accessSync(dirname(resolve(file)), constants.W_OK)
  const meter = openMeter()
  const ending = new AbortController()
  void tools
    .stopSignal()
    .then((signal) => ending.abort(new Error(`stopped by ${signal}; there is no backup`)))
  const write = (from: Place): Promise<Written> =>
    writeFrom(from, file, tools, meter.progress, ending.signal)
  let written: Written | number
  try {
    if (url !== undefined) written = await write({ url, directory })
    else {
      const copy = { directory: copyFolder(directory) }
      written =
        (await besideServer(directory, output, ending, () => write(copy))) ??
        (await write({ directory }))
    }
  } finally {
    meter.end()
  }
  if (typeof written === 'number') return written
  const { bytes, tables } = written
  reportTables(tables, { file: resolve(file), bytes }, json, output)
  output.err(`${file}: ${bytes} bytes`)
  return DONE
}

/** The server's part: lends a copy of its database until the input of the caller ends, however it ends. */
export async function lendCopy(
  db: Database,
  { config, log }: Pick<BackupTools, 'config' | 'log'>,
  output: Output,
  input: AsyncIterable<Uint8Array>,
): Promise<number> {
  const { GATEHOUSE_DATA_DIR: directory } = config.current
  const waitedMs = await copyCluster(db, directory)
  try {
    log.info('database copied for a backup', { waited_ms: Math.round(waitedMs) })
    output.out('copied')
    for await (const _ of input);
    return DONE
  } finally {
    await removeCopy(directory)
  }
}

interface Place {
  readonly url?: string
  readonly directory: string
}

interface Written {
  readonly bytes: number
  readonly tables: readonly TableContents[]
}

/** Runs `write` while the server lends a copy; undefined when no server runs, its exit code when it refuses. */
async function besideServer(
  directory: string,
  output: Output,
  ending: AbortController,
  write: () => Promise<Written>,
): Promise<Written | number | undefined> {
  const copied = Promise.withResolvers<void>()
  const held = new PassThrough()
  const answer: Output = { ...output, out: () => copied.resolve() }
  const lent = runRemotely(controlPath(directory), ['backup'], answer, held)
  const code = await Promise.race([copied.promise.then(() => 'copied' as const), lent])
  if (code !== 'copied') return code
  const gone = new Error('the server has stopped; there is no backup')
  lent.then(
    () => ending.abort(gone),
    () => ending.abort(gone),
  )
  try {
    return await write()
  } finally {
    held.end()
    await lent.catch(() => undefined)
  }
}

async function writeFrom(
  { url, directory }: Place,
  file: string,
  { version, now, log }: BackupTools,
  progress: Progress,
  ending: AbortSignal,
): Promise<Written> {
  if (url === undefined && !hasCluster(directory)) {
    throw new Error(`there is no database in ${directory}: nothing to back up`)
  }
  const options = { url, dataDirectory: directory, deadlineMs: TRANSFER_DEADLINE_MS }
  const database = await openDatabase(options, log)
  try {
    return await database.db.transaction(async (tx) => {
      const source = await openDatabaseSource(tx)
      const migrations = await readApplied(tx)
      if (migrations.length === 0) throw new Error('the database is empty: nothing to back up')
      const made_at = now().toISOString()
      const tables: TableContents[] = []
      async function* rows(): AsyncGenerator<readonly string[]> {
        for (const name of source.names) {
          for await (const batch of source.rows(name)) {
            ending.throwIfAborted()
            yield batch
            progress('back up', name, batch.length)
          }
          tables.push(await source.contents(name))
        }
        ending.throwIfAborted()
      }
      const contents = () => ({ version, made_at, migrations: [...migrations], tables })
      return { bytes: await writeBackup(file, rows(), contents), tables }
    })
  } finally {
    await database.close()
  }
}
