import { t } from 'tap'
import { parseServers } from '../../db/servers.ts'

/** What libpq's manual has as connection URIs: where they lead, and what is left for the client library. */
const ADDRESSES: readonly (readonly [url: string, server: object, rest: string])[] = [
  ['postgres://', { host: 'localhost', port: 5432 }, 'postgres://localhost?'],
  ['postgresql://one', { host: 'one', port: 5432 }, 'postgresql://localhost?'],
  ['postgres://one:5433/db', { host: 'one', port: 5433 }, 'postgres://localhost/db?'],
  ['postgres://u:p%40x@one/db', { host: 'one', port: 5432 }, 'postgres://u:p%40x@localhost/db?'],
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

t.test('only a server that takes changes is used where there is a choice', async (t) => {
  const writable = (url: string): boolean => parseServers(url).writable
  t.notOk(writable('postgres://one/db'))
  t.ok(writable('postgres://one,two/db'))
  t.ok(writable('postgres://one/db?target_session_attrs=primary'))
  for (const other of ['any', 'read-only', 'standby', 'prefer-standby']) {
    t.throws(() => parseServers(`postgres://one,two/db?target_session_attrs=${other}`), {
      message: `target_session_attrs ${other} is not supported; expected read-write`,
    })
  }
})
