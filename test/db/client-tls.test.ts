import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createSecureContext, TLSSocket } from 'node:tls'
import { t, type Test } from 'tap'
import { openClient } from '../../db/client.ts'
import { listen } from '../helpers/listen.ts'
import { sharedPostgres } from '../helpers/postgres.ts'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'

const one = { name: 'one', text: 'select 1 as n' }

t.test('TLS to the server, again after a connection is lost', async (t) => {
  const { db, front } = await open(t, { sslmode: 'require' })
  t.same(await db.run(one, []), [{ n: 1 }])
  t.same(front.names, ['localhost'], 'the server is told by which name it is meant')
  for (const socket of front.sockets) socket.resetAndDestroy()
  t.same(await until(() => db.run(one, []), 'a new connection'), [{ n: 1 }])
})

t.test('a certificate that nobody vouches for is refused where it is to be checked', async (t) => {
  const { db, front } = await open(t, {})
  await t.rejects(db.run(one, []), { message: /self-signed certificate/ })
  t.same(front.names, ['localhost'])
})

t.test('the certificate must be that of the host, be it a name or an address', async (t) => {
  for (const [host, names, refusal] of [
    ['localhost', 'DNS:localhost'],
    ['127.0.0.1', 'IP:127.0.0.1'],
    ['127.0.0.1', 'DNS:localhost', /127\.0\.0\.1 is not in the cert's list/],
    ['localhost', 'DNS:elsewhere', /Host: localhost\. is not in the cert's altnames/],
    // With several hosts it is that of each.
    ['127.0.0.1:1,127.0.0.1', 'IP:127.0.0.1'],
    ['127.0.0.1:1,127.0.0.1', 'DNS:localhost', /127\.0\.0\.1 is not in the cert's list/],
  ] as const) {
    const { db } = await open(t, { host, names, isTrusted: true })
    if (refusal === undefined) t.same(await db.run(one, []), [{ n: 1 }], `${host} ${names}`)
    else await t.rejects(db.run(one, []), { message: refusal }, `${host} ${names}`)
  }
})

t.test('a file of authorities that is not there is named', async (t) => {
  const target = 'postgres://one/db?sslmode=verify-full&sslrootcert=/nothing.pem'
  t.throws(() => openClient({ target, deadlineMs: 5_000, connections: 1 }), {
    message: /^sslrootcert \/nothing\.pem can't be read \(ENOENT/,
  })
})

type Options = { host?: string; names?: string; sslmode?: string; isTrusted?: boolean }

/** A client of a server whose certificate is for `names`; `isTrusted`: the client takes it for an authority's. */
async function open(t: Test, options: Options) {
  const { host = 'localhost', names = 'DNS:localhost', sslmode = 'verify-full' } = options
  const databases = await sharedPostgres()
  const front = await startTlsFront(t, names, Number(new URL(databases.url()).port))
  const { username, password, pathname } = new URL(databases.url())
  const trusted = options.isTrusted === true ? `&sslrootcert=${front.certificate}` : ''
  const place = `${host}:${front.port}${pathname}?sslmode=${sslmode}${trusted}`
  const target = `postgres://${username}:${password}@${place}`
  const db = openClient({ target, deadlineMs: 5_000, connections: 1 })
  t.teardown(() => db.close())
  return { db, front }
}

/** What stands for a PostgreSQL with TLS: takes it off and hands the rest to the one that there is. */
async function startTlsFront(t: Owner, subject: string, behind: number) {
  const folder = await temporaryFolder(t, 'tls')
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const name = ['-subj', '/CN=localhost', '-addext', `subjectAltName=${subject}`]
  const kind = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'.split(' ')
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
  const port = await listen(t, server)
  return { port, certificate: cert, names, sockets }
}
