import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { embedded, postgres } from '../helpers/backends.ts'
import { refuseCommands, runCli, runCliProcess } from '../helpers/cli.ts'
import { createSender, lostOf, startLoad, storedEvents } from '../helpers/deliveries.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT, exitOf, spawnProgram, type Env } from '../helpers/program.ts'
import { startServerProcess, type ServerProcess } from '../helpers/server-process.ts'
import { seedStatements } from '../helpers/transfer.ts'
import { until } from '../helpers/until.ts'

const EVENTS = 3_500

t.test('backups beside a server on the embedded engine', async (t) => {
  const sender = createSender()
  const env = { ...(await embedded.env(t)), ...sender.env }
  await embedded.query(env, seedStatements({ events: EVENTS, links: 60, sessions: 6 }))
  const server = await startServerProcess(t, { services: ['hooks'], env })
  const copy = join(env['GATEHOUSE_DATA_DIR'] ?? '', 'copy')

  const folder = await temporaryFolder(t, 'backups')
  const load = startLoad(t, { base: () => server.hooks, sender, senders: 4, restMs: 10 })
  await until(() => load.acked.length > 100, 'deliveries', 30_000)
  const before = [...load.acked]
  // As a file of which the engine has just changed the name: it is listed, and is not there.
  symlinkSync('gone', join(env['GATEHOUSE_DATA_DIR'] ?? '', 'pg', 'renamed'))
  // A name without a folder is one of the caller's folder, not of the server's.
  const program = ['env', '-C', folder, process.execPath, join(ROOT, 'server.ts')]
  const made = await runCliProcess(['backup', 'live'], { env, program })
  t.match(made, { code: 0, stdout: /^hooks\.events +\d{4} /m })
  await load.stop()
  t.same([load.refused, load.unanswered], [[], []], 'every delivery was taken')
  await until(() => !existsSync(copy), 'the copy to be removed')
  const told = server.logs().filter((line) => line.includes('copied for a backup'))
  t.match(told, [/"waited_ms":\d+/], 'the log says how long others had to wait')
  const live = await postgres.emptyEnv(t)
  t.match(await runCli(['restore', join(folder, 'live')], { env: live }), { code: 0 })
  const restored = await storedEvents(postgres, live)
  t.same(lostOf(before, restored), [], 'what was acknowledged before it began is in it')

  await t.test('ended on its way', (t) => endedOnTheWay(t, server, env))
  await server.stop()
  t.same(lostOf(load.acked, await storedEvents(embedded, env)), [], 'the server lost nothing')
})

/** Backups that are killed, stopped, and left by their server. */
async function endedOnTheWay(t: Test, server: ServerProcess, env: Env) {
  const copy = join(env['GATEHOUSE_DATA_DIR'] ?? '', 'copy')
  const others = await temporaryFolder(t, 'backups')
  /** A backup that has begun, and stands still until it goes on. */
  const begun = async (name: string) => {
    const child = spawnProgram(['backup', join(others, name)], env)
    const ended = exitOf(child)
    await until(() => existsSync(join(others, `${name}.part`)), 'rows to be written', 30_000)
    child.kill('SIGSTOP')
    return { child, ended }
  }
  const killed = await begun('killed')
  await refuseCommands(t, { env, state: async () => readdirSync(others) }, [
    [['backup', join(others, 'second')], 1, 'another backup is being made'],
  ])
  killed.child.kill('SIGKILL')
  await killed.ended
  await until(() => !existsSync(copy), 'the server to remove the copy')

  const stopped = await begun('stopped')
  stopped.child.kill('SIGTERM')
  stopped.child.kill('SIGCONT')
  t.match(await stopped.ended, { code: 1 })
  t.same(readdirSync(others), ['killed.part'], 'a stop takes the part away')

  const orphaned = await begun('orphaned')
  await server.kill()
  orphaned.child.kill('SIGCONT')
  t.match(await orphaned.ended, { code: 1 }, 'without its server it fails')
  t.ok(existsSync(copy))
  const whole = await runCli(['backup', join(others, 'killed')], { env })
  t.match(whole, { code: 0 }, 'the next one needs no server')
  t.notOk(existsSync(copy), 'and what was left is gone')
  t.match(readFileSync(join(others, 'killed'), 'utf8').slice(0, 18), 'gatehouse backup 1')
  t.same(readdirSync(others), ['killed'])
}
