import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { copyCluster, copyFolder, hasCluster, removeCopy } from '../../db/embedded/cluster.ts'
import { readApplied } from '../../db/migrate.ts'
import { openDatabase } from '../../db/open.ts'
import { writeBackup } from '../../db/transfer/backup-file.ts'
import { openDatabaseSources, type TableContents } from '../../db/transfer/source.ts'
import {
  command,
  JSON_FLAG,
  text,
  type ConfiguredTools,
  type DatabaseTools,
} from '../frame/command.ts'
import { controlPath } from '../frame/control.ts'
import { runRemotely } from '../frame/control-client.ts'
import { DONE, type Output } from '../frame/output.ts'
import { placeOfKey } from './secret-key.ts'
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
      const key = placeOfKey(tools.config)
      if (key !== undefined)
        output.err(`not in it is the key of its secrets: keep a copy of ${key}`)
      return DONE
    },
    runInServer: lendCopy,
  }),
]

/** Writes the backup; the exit code when a server refuses to lend its database. */
async function backUp(file: string, tools: ConfiguredTools) {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: directory } = tools.config.current
  const ending = new AbortController()
  const end = (why: string) => ending.abort(new Error(`${why}; there is no backup`))
  void tools.stopSignal().then((signal) => end(`stopped by ${signal}`))
  if (url !== undefined) return writeFrom(directory, file, tools, ending.signal)

  const copied = Promise.withResolvers<'copied'>()
  const held = new PassThrough()
  const answer: Output = { ...tools.output, out: () => copied.resolve('copied') }
  const lent = runRemotely(controlPath(directory), ['backup', '--', file], answer, held)
  const code = await Promise.race([copied.promise, lent])
  // No server runs.
  if (code === undefined) return writeFrom(directory, file, tools, ending.signal)
  if (code !== 'copied') return code
  const over = lent.catch(() => undefined).finally(() => end('the server has stopped'))
  try {
    return await writeFrom(copyFolder(directory), file, tools, ending.signal)
  } finally {
    held.end()
    await over
  }
}

/**
 * The server's part: lends a copy of its database until the caller's input ends, or breaks off.
 */
async function lendCopy({ db, config, log, output, input }: DatabaseTools) {
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

/**
 * Writes the backup from the configured server, or else from the embedded database in a folder.
 */
async function writeFrom(
  folder: string,
  file: string,
  { config, version, now, log }: ConfiguredTools,
  ending: AbortSignal,
) {
  const { DATABASE_URL: url } = config.current
  if (url === undefined && !hasCluster(folder)) {
    throw new Error(`there is no database in ${folder}: nothing to back up`)
  }
  const options = { url, dataDirectory: folder, deadlineMs: TRANSFER_DEADLINE_MS }
  await using database = await openDatabase(options, log)
  using meter = openMeter()
  return await database.db.transaction(async (tx) => {
    const sources = await openDatabaseSources(tx)
    const migrations = await readApplied(tx)
    if (migrations.length === 0) throw new Error('the database is empty: nothing to back up')
    const made_at = now().toISOString()
    const tables: TableContents[] = []
    async function* rows() {
      for (const source of sources) {
        for await (const batch of source.rows()) {
          ending.throwIfAborted()
          yield batch
          meter.progress('back up', source.name, batch.length)
        }
        tables.push(await source.contents())
      }
      ending.throwIfAborted()
    }
    const bytes = await writeBackup(file, rows(), () => {
      return { version, made_at, migrations: [...migrations], tables }
    })
    return { bytes, tables }
  })
}
