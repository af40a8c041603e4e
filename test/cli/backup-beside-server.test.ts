import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli, runCliProcess } from '../helpers/cli.ts'
import { createSender, lostOf, startLoad, storedEvents } from '../helpers/deliveries.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { exitOf, ROOT, spawnProgram } from '../helpers/program.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { seedStatements } from '../helpers/transfer-seed.ts'
import { until } from '../helpers/until.ts'

const [embedded] = backends

t.test('a backup beside a server that takes deliveries', async (t) => {
  const sender = createSender()
  const env = { ...(await embedded.env(t)), ...sender.env }
  await embedded.query(env, seedStatements({ events: 10_000, links: 1_000, sessions: 6 }))
  const server = await startServerProcess(t, { services: ['hooks'], env })
  const load = startLoad(t, { base: () => server.hooks, sender, senders: 8 })
  await until(() => load.acked.length > 200, 'deliveries', 30_000)

  const folder = await temporaryFolder(t, 'backups')
  const before = [...load.acked]
  // A name without a folder is one of the caller's folder, not of the server's.
  const program = ['env', '-C', folder, process.execPath, join(ROOT, 'server.ts')]
  const made = await runCliProcess(['backup', 'live'], { env, program })
  t.match(made, { code: 0, stdout: /^hooks\.events +1\d{4} /m })
  await load.stop()
  t.same([load.refused, load.unanswered], [[], []], 'every delivery was taken')
  const copy = join(env['GATEHOUSE_DATA_DIR'] ?? '', 'copy')
  await until(() => !existsSync(copy), 'the copy to be removed')
  const told = server.logs().filter((line) => line.includes('copied for a backup'))
  t.match(told, [/"waited_ms":\d+/], 'the log says how long others had to wait')
  await server.stop()

  const other = await embedded.emptyEnv(t)
  t.match(await runCli(['restore', join(folder, 'live')], { env: other }), { code: 0 })
  const restored = await storedEvents(embedded, other)
  t.ok(before.length > 200)
  t.same(lostOf(before, restored), [], 'what was acknowledged before it began is in it')
  t.same(lostOf(load.acked, await storedEvents(embedded, env)), [], 'and the server lost nothing')
})

t.test('a backup that ends too early leaves nothing', async (t) => {
  const env = await embedded.env(t)
  await embedded.query(env, seedStatements({ events: 20_000, links: 100, sessions: 1 }))
  const data = env['GATEHOUSE_DATA_DIR'] ?? ''
  const folder = await temporaryFolder(t, 'backups')
  const server = await startServerProcess(t, { services: ['links'], env })
  const begun = async (name: string) => {
    const child = spawnProgram(['backup', join(folder, name)], env)
    const ended = exitOf(child)
    await until(() => existsSync(join(folder, `${name}.part`)), 'rows to be written', 30_000)
    return { child, ended }
  }

  const killed = await begun('killed')
  t.match(await runCli(['backup', join(folder, 'second')], { env }), {
    code: 1,
    stderr: /^gatehouse: another backup is being made\n$/,
  })
  killed.child.kill('SIGKILL')
  await killed.ended
  await until(() => !existsSync(join(data, 'copy')), 'the server to remove the copy')

  const stopped = await begun('stopped')
  stopped.child.kill('SIGTERM')
  t.match(await stopped.ended, { code: 1 })
  t.same(readdirSync(folder), ['killed.part'], 'a stop takes the part away')

  const orphaned = await begun('orphaned')
  await server.kill()
  t.match(await orphaned.ended, { code: 1 }, 'without its server it fails')
  t.ok(existsSync(join(data, 'copy')))
  const whole = await runCli(['backup', join(folder, 'killed')], { env })
  t.match(whole, { code: 0 }, 'the next one needs no server')
  t.notOk(existsSync(join(data, 'copy')), 'and what was left is gone')
  t.match(readFileSync(join(folder, 'killed'), 'utf8').slice(0, 18), 'gatehouse backup 1')
  t.same(readdirSync(folder), ['killed'])
})
