import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { linesOf } from '../helpers/outages.ts'
import { ENGINE_FLAGS } from '../helpers/program.ts'
import { startServerProcess, type ServerProcess } from '../helpers/server-process.ts'

const BREAKS = ['--import', './test/faults/break-process.ts']
const program = [process.execPath, ...ENGINE_FLAGS, ...BREAKS, 'server.ts']

/** The lines of a log that are errors. */
function errorsOf(server: ServerProcess) {
  return linesOf(server).filter(({ level }) => level === 'error')
}

await t.test('a part that can not be closed is told, and the others are closed', async (t) => {
  const env = { ...(await postgres.env(t)), BREAK: 'close' }
  const server = await startServerProcess(t, { env, services: ['links'], program })
  const { code } = await server.stop()
  t.equal(code, 1)
  const line = { msg: 'not stopped in order', error: 'a listener was not closed' }
  t.match(errorsOf(server), [line])
  t.equal(errorsOf(server).length, 1, 'nothing else held up the stop')
})

await t.test('a stop that takes too long says so', async (t) => {
  const env = { ...(await postgres.env(t)), BREAK: 'hang' }
  const server = await startServerProcess(t, { env, services: ['links'], program })
  const { code } = await server.stop()
  t.equal(code, 1)
  t.match(errorsOf(server), [{ msg: 'stopped late', limit_ms: 10_000 }])
})

await t.test('what nobody catches is one line', async (t) => {
  const env = await postgres.env(t)
  const services = ['links'] as const
  const server = await startServerProcess(t, { env, services, program, mayExit: true })
  await request(`${server.links}/healthz?throw`)
  const { code } = await server.exited
  t.equal(code, 1)
  const [line] = errorsOf(server)
  t.match(line, {
    msg: 'uncaught exception',
    error: 'nobody catches this',
    stack: /break-process/,
  })
})
