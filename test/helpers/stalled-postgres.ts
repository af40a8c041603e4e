import { readFileSync } from 'node:fs'
import type { Owner } from './owner.ts'
import { run } from './postgres.ts'
import type { Cluster } from './postgres.ts'

/** Stops every process of a cluster where it stands (SIGSTOP); gives what lets them go on. */
export async function stallPostgres(t: Owner, cluster: Cluster): Promise<() => void> {
  const processes = await processesOf(cluster.url())
  const goOn = (): void => signalAll(processes, 'SIGCONT')
  t.teardown(goOn)
  signalAll(processes, 'SIGSTOP')
  return goOn
}

/** Process ids of a whole cluster: the sessions, the helpers and their parent, which comes first. */
async function processesOf(url: string): Promise<readonly number[]> {
  const rows = await run(url, 'select pid from pg_stat_activity where pid <> pg_backend_pid()')
  const pids = rows.map((row) => Number(row['pid']))
  const stat = readFileSync(`/proc/${pids[0]}/stat`, 'utf8')
  const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  return [parent, ...pids]
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
