import { statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { join } from 'node:path'
import { backends } from '../test/helpers/backends.ts'
import { runCliProcess } from '../test/helpers/cli.ts'
import { request } from '../test/helpers/http.ts'
import { temporaryFolder } from '../test/helpers/owner.ts'
import type { Env } from '../test/helpers/program.ts'
import { startServer } from '../test/helpers/server.ts'
import { DAY_OF_SESSIONS, seedStatements } from '../test/helpers/transfer.ts'
import type { Figure, Owner, Part } from './helpers/measure.ts'

const SEED = { events: 100_000, links: 10_000, sessions: DAY_OF_SESSIONS }
/** What a request may wait before it gets 503. */
const LONGEST_MS = 5_000
const UPKEEP_MS = 15_000

/** 100,000 events, 10,000 links and a day of sessions: to a server, into a backup and out of it. */
export const transfer: Part = {
  name: 'transfer',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const [embedded, postgres] = backends
    const [env, other, target] = [
      await embedded.env(owner),
      await embedded.env(owner),
      await postgres.env(owner),
    ]
    const folder = await temporaryFolder(owner, 'backups')
    const [alone, beside] = [join(folder, 'alone'), join(folder, 'beside')]
    await timed(['migrate'], env)
    await embedded.query(env, seedStatements(SEED))
    const figures = [
      seconds('db move', await timed(['db', 'move', '--to', '-'], env, target['DATABASE_URL'])),
      seconds('backup', await timed(['backup', alone], env)),
      { name: 'size of the backup', value: statSync(alone).size / 2 ** 20, unit: 'MiB' },
      seconds('restore', await timed(['restore', alone], other)),
    ]
    const server = await startServer(owner, { services: ['hooks'], env })
    // Its first upkeep looks at every table once.
    await pause(UPKEEP_MS)
    const waits: number[] = []
    const backup = timed(['backup', beside], env)
    const over = backup.then(() => true)
    while (!(await Promise.race([over, pause(20).then(() => false)]))) {
      const asked = performance.now()
      await request(`${server.hooks}/log`)
      waits.push(performance.now() - asked)
    }
    const longest = Math.max(...waits)
    return [
      ...figures,
      seconds('backup beside a server', await backup),
      {
        name: 'longest wait of a request meanwhile',
        value: longest,
        unit: 'ms',
        bound: `≤ ${LONGEST_MS}`,
        kept: longest <= LONGEST_MS,
      },
    ]
  },
}

async function timed(args: readonly string[], env: Env, input = ''): Promise<number> {
  const began = performance.now()
  const { code, stderr } = await runCliProcess(args, { env, input, limitMs: 600_000 })
  if (code !== 0) throw new Error(`${args[0]} ended with ${code}: ${stderr}`)
  return (performance.now() - began) / 1000
}

function seconds(name: string, value: number): Figure {
  return { name, value, unit: 's' }
}
