import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { copyCluster, copyFolder, hasCluster, removeCopy } from '../db/embedded/cluster.ts'
import { readApplied } from '../db/migrate.ts'
import { openDatabase, type DatabaseOptions } from '../db/open.ts'
import { writeBackup } from '../db/transfer/backup-file.ts'
import type { Progress } from '../db/transfer/load.ts'
import { openDatabaseSource, type TableContents } from '../db/transfer/source.ts'
import { command, JSON_FLAG, text, type ConfiguredTools, type DatabaseTools } from './command.ts'
import { controlPath, runRemotely } from './control.ts'
import { DONE, type Output } from './output.ts'
import { openMeter, reportTables, TRANSFER_DEADLINE_MS } from './transfer.ts'

/**
 * Everything in the database as it is at one moment. Beside a server on the embedded engine it
 * reads a copy that the server makes for it; in any case this process writes the file.
 */
export const commands = [
  command({
    name: 'backup',
    summary: 'write everything in the database to a new file, also beside a running server',
    args: { file: text('FILE', 'the new file') },
    flags: {
      force: { summary: 'replace a file that exists' },
      json: JSON_FLAG,
    },
    needs: 'configuration',
    async run({ args: { file }, flags: { force, json } }, tools) {
      const { output } = tools
      if (!force && existsSync(file)) {
        throw new Error(`${file} is there already; --force replaces it`)
      }
      // Checked before a server copies its database for nothing.
      accessSync(dirname(resolve(file)), constants.W_OK)
      const written = await backUp(file, tools)
      if (typeof written === 'number') return written
      const { bytes, tables } = written
      reportTables(tables, { file: resolve(file), bytes }, json, output)
      output.err(`${file}: ${bytes} bytes`)
      return DONE
    },
    runInServer: lendCopy,
  }),
]

/** Writes the backup; the exit code when a server refuses to lend its database. */
async function backUp(file: string, tools: ConfiguredTools): Promise<Written | number> {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = tools.config.current
  const meter = openMeter()
  const ending = new AbortController()
  void tools
    .stopSignal()
    .then((signal) => ending.abort(new Error(`stopped by ${signal}; there is no backup`)))
  const write = (from: Place): Promise<Written> =>
    writeFrom(from, file, tools, meter.progress, ending.signal)
  try {
    if (url !== undefined) return await write({ url, dataDirectory })
    const copy = { url, dataDirectory: copyFolder(dataDirectory) }
    const lent = await besideServer(dataDirectory, file, tools.output, ending, () => write(copy))
    return lent ?? (await write({ url, dataDirectory }))
  } finally {
    meter.end()
  }
}

/** The server's part: lends a copy of its database until the caller's input ends, or breaks off. */
async function lendCopy({ db, config, log, output, input }: DatabaseTools): Promise<number> {
  const { GATEHOUSE_DATA_DIR: directory } = config.current
  const waitedMs = await copyCluster(db, directory)
  try {
    log.info('database copied for a backup', { waited_ms: Math.round(waitedMs) })
    output.out('copied')
    await finished(Readable.from(input).resume())
    return DONE
  } finally {
    await removeCopy(directory)
  }
}

type Place = Pick<DatabaseOptions, 'url' | 'dataDirectory'>

interface Written {
  readonly bytes: number
  readonly tables: readonly TableContents[]
}

/**
 * Runs `write` while the server lends a copy; undefined when no server runs, its exit code when it
 * refuses.
 */
async function besideServer(
  directory: string,
  file: string,
  output: Output,
  ending: AbortController,
  write: () => Promise<Written>,
): Promise<Written | number | undefined> {
  const copied = Promise.withResolvers<void>()
  const held = new PassThrough()
  const answer: Output = { ...output, out: () => copied.resolve() }
  const lent = runRemotely(controlPath(directory), ['backup', '--', file], answer, held)
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
  place: Place,
  file: string,
  { version, now, log }: ConfiguredTools,
  progress: Progress,
  ending: AbortSignal,
): Promise<Written> {
  if (place.url === undefined && !hasCluster(place.dataDirectory)) {
    throw new Error(`there is no database in ${place.dataDirectory}: nothing to back up`)
  }
  const database = await openDatabase({ ...place, deadlineMs: TRANSFER_DEADLINE_MS }, log)
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
