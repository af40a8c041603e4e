import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { createSecureContext, TLSSocket } from 'node:tls'
import { t } from 'tap'
import type { Test } from 'tap'
import { openClient } from '../../db/client.ts'
import type { Database } from '../../db/client.ts'
import { sharedPostgres } from '../helpers/postgres.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Owner } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'

const one = { name: 'one', text: 'select 1 as n' }

t.test('TLS to the server, again after a connection is lost', async (t) => {
  const { db, front } = await open(t, 'require')
  t.same(await db.run(one, []), [{ n: 1 }])
  t.same(front.names, ['localhost'], 'the server is told by which name it is meant')
  for (const socket of front.sockets) socket.resetAndDestroy()
  t.same(await until(() => db.run(one, []), 'a new connection'), [{ n: 1 }])
})

t.test('a certificate that nobody vouches for is refused where it is to be checked', async (t) => {
  const { db, front } = await open(t, 'verify-full')
  await t.rejects(db.run(one, []), { message: /self-signed certificate/ })
  t.same(front.names, ['localhost'])
})

async function open(t: Test, sslmode: string): Promise<{ db: Database; front: Front }> {
  const databases = await sharedPostgres()
  const front = await startTlsFront(t, Number(new URL(databases.url()).port))
  const url = new URL(databases.url())
  url.hostname = 'localhost'
  url.port = String(front.port)
  url.searchParams.set('sslmode', sslmode)
  const db = openClient({ target: url.href, deadlineMs: 5_000, connections: 1 })
  t.teardown(() => db.close())
  return { db, front }
}

/** What stands for a PostgreSQL with TLS: takes it off and hands the rest to the one that there is. */
type Front = { port: number; names: string[]; sockets: Set<Socket> }

async function startTlsFront(t: Owner, behind: number): Promise<Front> {
  const folder = await temporaryFolder(t, 'tls')
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const kind = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ]
  execFileSync('openssl', ['req', '-x509', ...kind, ...name, '-keyout', key, '-out', cert], {
    stdio: 'ignore',
  })
  const secureContext = createSecureContext({ key: readFileSync(key), cert: readFileSync(cert) })
  const names: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => {
      // The client's first word asks whether there is TLS.
      socket.write('S')
      const inside = new TLSSocket(socket, {
        isServer: true,
        secureContext,
        SNICallback(asked, done) {
          names.push(asked)
          done(null, secureContext)
        },
      })
      const on = connect({ host: '127.0.0.1', port: behind })
      for (const side of [inside, on]) side.on('error', () => socket.destroy())
      inside.on('close', () => on.destroy())
      on.pipe(inside).pipe(on)
    })
  })
  const listening = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', listening.resolve)
  await listening.promise
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    names,
    sockets,
  }
}
