import { readFileSync } from 'node:fs'
import type { Owner } from './owner.ts'
import { run } from './postgres.ts'
import type { Cluster } from './postgres.ts'
import { statFields } from './process-figures.ts'

/** Stops every process of a cluster where it stands (SIGSTOP); gives what lets them go on. */
export async function stallPostgres(t: Owner, cluster: Cluster): Promise<() => void> {
  const parent = await parentOf(cluster.url())
  const stopped = [parent]
  const goOn = (): void => signalAll(stopped, 'SIGCONT')
  t.teardown(goOn)
  // First of all: it must start no session between the look and the stop.
  signalAll(stopped, 'SIGSTOP')
  stopped.push(...childrenOf(parent))
  signalAll(stopped, 'SIGSTOP')
  return goOn
}

/** The process that all sessions and helpers of a cluster are children of. */
async function parentOf(url: string): Promise<number> {
  const query = 'select pid from pg_stat_activity where pid <> pg_backend_pid() limit 1'
  const [helper] = await run(url, query)
  return Number(statFields(Number(helper?.['pid']))[1])
}

function childrenOf(pid: number): readonly number[] {
  const list = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return list.trim().split(' ').map(Number)
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // A session that ended meanwhile.
    }
  }
}
