import { PGlite } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'
import { isMainThread, Worker } from 'node:worker_threads'
import { asset } from '../../kernel/assets.ts'
import { messageOf } from '../../kernel/log.ts'
import { compileEngine } from './engine.ts'

/**
 * New databases are copied from templates, and nobody creates one here. Nothing vacuums templates,
 * so PostgreSQL would refuse all changes after 2,000 million transactions. They are half of a
 * cluster's files.
 */
const TEMPLATES = ['template1', 'template0']

/**
 * Makes a new cluster in the directory that the command line names; the caller forces it to the
 * disk. A process of its own (`createCluster()`), because initdb's memory of some 100 MiB comes
 * back only with a process's end.
 */
async function create(cluster: string): Promise<void> {
  const pg = await PGlite.create({
    fs: new NodeFS(cluster),
    pgliteWasmModule: await compileEngine('own'),
    fsBundle: new Blob([asset('pglite/pglite.data')]),
  })
  await pg.exec('update pg_database set datistemplate = false')
  for (const name of TEMPLATES) await pg.exec(`drop database ${name}`)
  await pg.close()
}

function fail(error: unknown): void {
  process.stderr.write(messageOf(error).split('\n', 1)[0] ?? '')
  process.exitCode = 1
}

if (!isMainThread) {
  await create(process.argv[2] ?? '')
} else if (import.meta.main) {
  // initdb keeps its thread busy. This one sees that the parent has ended, and ends with it: the
  // next start removes the unfinished cluster, and nothing may write there then.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
  new Worker(import.meta.filename, { argv: process.argv.slice(2) })
    .on('error', fail)
    .on('exit', () => process.exit())
}
