import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ended, inventoryFile, startOps } from '../helpers/ops-setup.ts'
import { ROOT } from '../helpers/program.ts'
import type { Env } from '../helpers/program.ts'

const [, postgres] = backends
/** It is good for `localhost` and 127.0.0.1. */
const CERTIFICATE = join(ROOT, 'test', 'fixtures', 'localhost.pem')

/** Whether each check of one session of the probe was good, by name, and the messages of its events. */
async function probed(t: Test, checks: readonly object[], env: Env = {}) {
  const inventory = await inventoryFile(t, { services: [{ name: 'shop', checks }] })
  const ops = await startOps(t, postgres, { OPS_INVENTORY: inventory, ...env })
  const session = await ended(ops)
  t.match(session, { status: 'completed', exit_code: 0 })
  const states = await postgres.query(ops.env, 'select name, ok from ops.check_states')
  const events = await postgres.query(ops.env, 'select message from ops.events order by id')
  return {
    good: new Map(states.map(({ name, ok }) => [String(name), ok])),
    said: events.map(({ message }) => String(message)),
  }
}

t.test('tls: of an address, which no server can be asked for by name', async (t) => {
  const pem = readFileSync(CERTIFICATE)
  const asked: string[] = []
  const server = createServer({
    ...{ key: pem, cert: pem },
    SNICallback(name, done) {
      asked.push(name)
      done(null)
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo
  const check = { type: 'tls', port, timeout_s: 30 }
  const checks = ['127.0.0.1', 'localhost'].map((host) => ({ ...check, host, name: host }))
  const trusted = await probed(t, checks, { NODE_EXTRA_CA_CERTS: CERTIFICATE })
  t.same(trusted.said, [])
  t.same(Object.fromEntries(trusted.good), { '127.0.0.1': true, localhost: true })
  t.same(asked, ['localhost'], 'a name is still asked for')
  const foreign = await probed(t, checks.slice(0, 1))
  t.match(foreign.said, [/^127\.0\.0\.1: the certificate is not trusted: DEPTH_ZERO_SELF_SIGNED/])
})

t.test('process: a text that is not ASCII', async (t) => {
  const match = `größe-漢字-${process.pid}`
  const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 60_000)', match])
  t.teardown(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  const type = 'process'
  const { good } = await probed(t, [
    { type, name: 'there', match },
    { type, name: 'away', match: `${match}ß` },
  ])
  t.same(Object.fromEntries(good), { there: true, away: false })
})

t.test('command: a gatehouse that is run reads its configuration like any other', async (t) => {
  const folder = await temporaryFolder(t)
  const argv = [process.execPath, join(ROOT, 'server.ts'), 'user', 'list', '--data-dir', folder]
  const { said } = await probed(t, [{ type: 'command', name: 'users', argv, timeout_s: 60 }])
  t.same(said, [])
})

t.test('checks without a name that look at something long are told apart', async (t) => {
  // No text that a database makes short.
  const long = randomBytes(4_000).toString('hex')
  const command = { type: 'command', argv: ['true', long] }
  const { good } = await probed(t, [command, { ...command, argv: ['false', `${long}1`] }])
  t.same([...good.values()].toSorted(), [false, true])
  for (const name of good.keys()) t.match(name, /^command (?:true|false) [0-9a-f]+…[0-9a-f]{16}$/)
  const lengths = [...good.keys()].map(({ length }) => length)
  t.same(lengths, [200, 200])
})
