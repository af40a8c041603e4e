import type { Test } from 'tap'
import { postgres } from './backends.ts'
import { createSender } from './deliveries.ts'
import type { Owner } from './owner.ts'
import { run, type Cluster } from './postgres.ts'
import { childrenOf, statFields } from './process-figures.ts'
import type { Env } from './program.ts'
import { startServer, type TestServer } from './server.ts'

/** Starts a hooks service, and a sender that it knows, on a cluster that the test may stop, crash and freeze. */
export async function startOn(t: Owner, cluster: Cluster) {
  const sender = createSender()
  const env = { ...sender.env, DATABASE_URL: await cluster.createDatabase() }
  const server = await startServer(t, { services: ['hooks'], env })
  return { env, sender, server, base: server.hooks }
}

/** The lines that a server has logged, read. */
export function linesOf(
  server: Pick<TestServer, 'logs'>,
): readonly Readonly<Record<string, unknown>>[] {
  return server.logs().map((line) => JSON.parse(line))
}

/** The log may say that the database was away, and nothing worse. */
export function noFailureIn(t: Test, server: TestServer) {
  const bad = /handler failed|unhandled|UnhandledPromise|TypeError|"level":"error"/i
  t.same(
    server.logs().filter((line) => bad.test(line)),
    [],
    'no failure in the log',
  )
}

/** What PostgreSQL says when its disk is full: the database counts as out of reach. */
export const FULL = '53100'

/**
 * Has a PostgreSQL server refuse rows, as one that fails between two statements does: `change` names it
 * (`insert on ops.events`), `when` is SQL over the row `new`. Without an error code of its own it is one
 * that never heals. Gives what ends it.
 */
export async function refuseRows(env: Env, change: string, when: string, errcode = 'P0001') {
  const query = async (text: string) => void (await postgres.query(env, text))
  await query(
    `create or replace function public.refuse() returns trigger language plpgsql
         as $$ begin raise exception 'refused by the test' using errcode = tg_argv[0]; end $$`,
  )
  await query(
    `create trigger refuse before ${change} for each row when (${when})
       execute function public.refuse('${errcode}')`,
  )
  return () => query(`drop trigger refuse on ${change.split(' on ')[1]}`)
}

/** Transactions that a PostgreSQL server has not committed in this database; it counts them within a second. */
export async function rollbacks(env: Env): Promise<number> {
  const text = `select xact_rollback::int as count from pg_stat_database
    where datname = current_database()`
  return Number((await postgres.query(env, text))[0]?.['count'])
}

/** Stops every process of a cluster where it stands (SIGSTOP); gives what lets them go on. */
export async function stallPostgres(t: Owner, cluster: Cluster): Promise<() => void> {
  const parent = await parentOf(cluster.url())
  const stopped = [parent]
  const goOn = () => signalAll(stopped, 'SIGCONT')
  t.teardown(goOn)
  // First of all: it must start no session between the look and the stop.
  signalAll(stopped, 'SIGSTOP')
  stopped.push(...childrenOf(parent))
  signalAll(stopped, 'SIGSTOP')
  return goOn
}

/** The process that all sessions and helpers of a cluster are children of. */
async function parentOf(url: string) {
  const query = 'select pid from pg_stat_activity where pid <> pg_backend_pid() limit 1'
  const [helper] = await run(url, query)
  return Number(statFields(Number(helper?.['pid']))[1])
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals) {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // A session that ended meanwhile.
    }
  }
}
