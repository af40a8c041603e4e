import { createServer } from 'node:net'
import { t } from 'tap'
import { parseServers } from '../../db/servers.ts'
import { listen } from '../helpers/listen.ts'

/** What libpq's manual has as connection URIs: where they lead, and what is left for the client library. */
const ADDRESSES: readonly (readonly [url: string, server: object, rest: string])[] = [
  ['postgres://', { host: 'localhost', port: 5432 }, 'postgres://localhost?'],
  ['postgresql://one', { host: 'one', port: 5432 }, 'postgresql://localhost?'],
  ['postgres://one:5433/db', { host: 'one', port: 5433 }, 'postgres://localhost/db?'],
  ['postgres://u:p%40x@one/db', { host: 'one', port: 5432 }, 'postgres://u:p%40x@localhost/db?'],
  // As URLs are read elsewhere; a part of a password must not be looked up as a host.
  ['postgres://u:p@x@one/db', { host: 'one', port: 5432 }, 'postgres://u:p@x@localhost/db?'],
  [
    'postgres://u@[2001:db8::1]:6/db',
    { host: '2001:db8::1', port: 6 },
    'postgres://u@localhost/db?',
  ],
  ['postgres:///db?host=one&port=5433', { host: 'one', port: 5433 }, 'postgres://localhost/db?'],
  [
    'postgres:///db?host=/run/pg&sslmode=require',
    { host: '/run/pg', port: 5432, path: '/run/pg/.s.PGSQL.5432' },
    'postgres://localhost/db?',
  ],
  [
    'postgres://u@%2Frun%2Fpg:6/db?sslmode=require',
    { host: '/run/pg', port: 6, path: '/run/pg/.s.PGSQL.6' },
    'postgres://u@localhost/db?',
  ],
  [
    'postgres://one/db?sslmode=verify-full&target_session_attrs=read-write',
    { host: 'one', port: 5432 },
    'postgres://localhost/db?sslmode=verify-full',
  ],
]

t.test('addresses as libpq reads them', async (t) => {
  for (const [url, server, rest] of ADDRESSES) {
    const servers = parseServers(url)
    t.same(await servers.find(), server, url)
    t.equal(servers.url, rest, url)
  }
})

t.test('TLS is left out only where every server is on a unix socket', async (t) => {
  const urlOf = (hosts: string) =>
    parseServers(`postgres:///db?host=${hosts}&sslmode=verify-full`).url
  t.equal(urlOf('/run/one,/run/two'), 'postgres://localhost/db?')
  t.equal(urlOf('/run/one,two'), 'postgres://localhost/db?sslmode=verify-full')
})

t.test('only a server that takes changes is used where there is a choice', async (t) => {
  const writable = (url: string) => parseServers(url).writable
  t.notOk(writable('postgres://one/db'))
  t.ok(writable('postgres://one,two/db'))
  t.ok(writable('postgres://one/db?target_session_attrs=primary'))
  for (const other of ['any', 'read-only', 'standby', 'prefer-standby']) {
    t.throws(() => parseServers(`postgres://one,two/db?target_session_attrs=${other}`), {
      message: `target_session_attrs ${other} is not supported; expected read-write`,
    })
  }
})

t.test('a port is a number', async (t) => {
  for (const [url, port] of [
    ['postgres:///db?host=one&port=abc', 'abc'],
    ['postgres:///db?host=one,two&port=5432,0', '0'],
    ['postgres://one,two:65536/db', '65536'],
  ] as const) {
    const message = `the URL of the database has the port ${port}; expected 1 to 65535`
    t.throws(() => parseServers(url), { message })
  }
})

t.test('a server that falls silent once it is connected ends no search for another', async (t) => {
  let connections = 0
  const silent = createServer((socket) => {
    connections += 1
    // "Authenticated" and "ready"; then it answers nothing.
    socket.once('data', () => socket.write('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I', 'latin1'))
  })
  const port = await listen(t, silent)
  const servers = parseServers(`postgres://u@127.0.0.1:${port},127.0.0.1:1/db`)
  for (let search = 1; search <= 2; search++) {
    await t.rejects(servers.find(), { message: /no answer in 2 s; .*ECONNREFUSED/ })
    t.equal(connections, search, 'each search asks again')
  }
})
