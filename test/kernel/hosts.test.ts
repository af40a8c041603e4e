import { t } from 'tap'
import { parseHosts } from '../../kernel/hosts.ts'

function named(list: string, url: string): boolean {
  return parseHosts(list)(new URL(url))
}

t.test('a host without a port is allowed on every port', async (t) => {
  t.ok(named('localhost', 'http://localhost/'))
  t.ok(named('localhost', 'https://localhost:8443/hook?x=1'))
  t.ok(named('a.test, localhost', 'http://LOCALHOST:3000/'))
  t.notOk(named('localhost', 'http://localhost.evil.test/'))
  t.notOk(named('localhost', 'http://sub.localhost/'))
  t.notOk(named('localhost', 'http://127.0.0.1/'), 'a name is not its address')
})

t.test('a host with a port is allowed on that port alone', async (t) => {
  t.ok(named('localhost:3000', 'http://localhost:3000/hook'))
  t.notOk(named('localhost:3000', 'http://localhost:3001/hook'))
  t.notOk(named('localhost:3000', 'http://localhost/'))
  t.ok(named('a.test:80', 'http://a.test/'), "the scheme's own port")
  t.ok(named('a.test:443', 'https://a.test/'))
  t.notOk(named('a.test:80', 'https://a.test/'))
})

t.test('an address is the same in every spelling', async (t) => {
  t.ok(named('127.0.0.1:3000', 'http://2130706433:3000/'))
  t.ok(named('[::1]', 'http://[0:0:0:0:0:0:0:1]:9000/'))
  t.ok(named('[0:0::1]:9000', 'http://[::1]:9000/'))
  t.notOk(named('10.0.0.5', 'http://10.0.0.50/'))
})

t.test('what is no host is refused by its place, and not quoted', async (t) => {
  t.throws(() => parseHosts('a, u:password@b'), { message: 'entry 2 is no host or host:port' })
  const bad = ['', 'a,,b', 'http://a', 'a/b', 'a:0', 'a:65536', 'a:b', 'u@a', '::1', '[::1', 'a b']
  for (const text of bad) t.throws(() => parseHosts(text), /is no host or host:port/, text)
})
