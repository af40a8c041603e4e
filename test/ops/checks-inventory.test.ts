import { t } from 'tap'
import { messageOf } from '../../kernel/log.ts'
import { everySeconds, retriesOf } from '../../services/ops/checks/check.ts'
import { backends } from '../helpers/backends.ts'
import { inventoryFile, startOps } from '../helpers/ops.ts'
import { secret } from '../helpers/secrets.ts'

const [, postgres] = backends
const env = await postgres.env(t)
const password = secret('password')

const disk = { type: 'disk', path: '/' }
const http = { type: 'http', url: 'https://shop.test/' }
const tcp = { type: 'tcp', host: 'db', port: 5432 }
const dns = { type: 'dns', host: 'shop.test' }
const program = { type: 'process', program: 'node' }
const age = { type: 'file_age', path: '/backup' }

const EVERY = 'every must be 10s to 24h'
const STATUS = 'status must be such as 200, "200-299", or a list of these'
const MEMBERS = 'members/0 must be path=value, such as db.state=up'
const HEADERS = 'headers must be names of HTTP headers with values of one line'
const NO_TLS = 'must not be there without https in the url'
const HEAD = 'must not be there with the method HEAD, which has no body'
const SERVER = 'server must be an IP address with or without a port, such as 192.0.2.53:5353'
const NOT_TOLD = 'investigate must not be there without the level critical'
const ALONE = 'exists must not be false with max_age_s or min_bytes'

/** Wrong checks, and what is said after their place in the file. */
const REFUSED = [
  [{ ...disk, every: '9s' }, EVERY],
  [{ ...disk, every: 9.9 }, EVERY],
  [{ ...disk, every: '25h' }, EVERY],
  [{ ...disk, every: 86_401 }, EVERY],
  [{ ...disk, every: '1 minute' }, EVERY],
  [{ ...disk, every: '0' }, EVERY],
  [{ ...disk, every: true }, /^every must be /],
  [{ ...disk, retries: -1 }, 'retries must be >= 0'],
  [{ ...disk, retries: 11 }, 'retries must be <= 10'],
  [{ ...disk, retries: 0.5 }, 'retries must be integer'],
  [{ ...disk, timeout_s: 61 }, 'timeout_s must be <= 60'],
  [
    { ...http, url: 'ftp://shop.test/' },
    'url must be an address that begins with http:// or https://',
  ],
  [{ ...http, method: 'get' }, /^method must be one of /],
  [{ ...http, method: 'CONNECT' }, /^method must be one of /],
  [{ ...http, status: 99 }, STATUS],
  [{ ...http, status: '200-' }, STATUS],
  [{ ...http, status: '299-200' }, STATUS],
  [{ ...http, status: [] }, STATUS],
  [{ ...http, status: [200, 'ok'] }, STATUS],
  [{ ...http, status: [200, { from: 300 }] }, STATUS],
  [{ ...http, status: { from: 200 } }, /^status must be /],
  [{ ...http, members: ['status'] }, MEMBERS],
  [{ ...http, members: ['a..b=c'] }, MEMBERS],
  [{ ...http, members: 'status=ok' }, 'members must be array'],
  [{ ...http, headers: { 'x y': 'z' } }, HEADERS],
  [{ ...http, headers: { authorization: `Bearer ${password}\r\nx: y` } }, HEADERS],
  [{ ...http, headers: { accept: 1 } }, /^headers\/accept must be string/],
  [{ ...http, body: '{}' }, 'body must not be there without the method POST, PUT, PATCH, DELETE'],
  [{ ...http, method: 'HEAD', contains: 'x' }, `contains ${HEAD}`],
  [{ ...http, method: 'HEAD', pattern: 'x' }, `pattern ${HEAD}`],
  [{ ...http, method: 'HEAD', members: ['a=b'] }, `members ${HEAD}`],
  [{ ...http, max_ms: 0 }, 'max_ms must be >= 1'],
  [{ ...http, url: 'http://shop.test/', days: 3 }, `days ${NO_TLS}`],
  [{ ...http, url: 'http://shop.test/', ca: '/ca.pem' }, `ca ${NO_TLS}`],
  [{ ...http, url: 'http://shop.test/', insecure: true }, `insecure ${NO_TLS}`],
  [{ ...http, ca: '/ca.pem', insecure: true }, 'ca must not be there with insecure'],
  [{ ...http, ca: 'ca.pem' }, 'ca must be a path that begins with /'],
  [{ ...tcp, host: '-oProxyCommand' }, 'host must be a name or an address'],
  [{ ...tcp, send: 'PING' }, 'contains must be there with send'],
  [{ ...dns, record: 'SRV' }, /^record must be one of /],
  [{ ...dns, server: 'ns.shop.test' }, SERVER],
  [{ ...dns, server: '192.0.2.53:99999' }, SERVER],
  [{ ...dns, address: '192.0.2.1' }, 'address is not known'],
  [{ type: 'ping', host: '-f' }, 'host must be a name or an address'],
  [{ type: 'ping', host: 'a b' }, 'host must be a name or an address'],
  [{ type: 'tls', host: 'shop.test', insecure: true }, 'insecure is not known'],
  [{ ...program, min: 3, max: 2 }, 'max must be 3 or more, as min is'],
  [{ ...program, max: 0 }, 'max must be 1 or more, as min is'],
  [{ type: 'process', min: 1 }, / must have match or program$/],
  [age, / must have max_age_s or exists$/],
  [{ ...age, exists: false, max_age_s: 60 }, ALONE],
  [{ ...age, exists: false, min_bytes: 1 }, ALONE],
  [
    { type: 'container', container: '../json' },
    'container must be the name or the id of a container',
  ],
  [{ type: 'container', socket: 'docker.sock' }, 'socket must be a path that begins with /'],
  [{ type: 'container', log_lines: 21 }, 'log_lines must be <= 20'],
  [{ ...tcp, investigate: 4 }, /^investigate must be one of /],
  [{ ...tcp, investigate: 0 }, /^investigate must be one of /],
  [{ ...tcp, investigate: 'true' }, /^investigate must be one of /],
  [{ ...tcp, investigate: true, level: 'warning' }, NOT_TOLD],
  [{ ...disk, investigate: 2 }, NOT_TOLD],
] as const

t.test('a wrong check is refused with its place and what is expected there', async (t) => {
  for (const [check, said] of REFUSED) {
    const inventory = { services: [{ name: 'shop', checks: [check] }] }
    const OPS_INVENTORY = await inventoryFile(t, inventory)
    const start = startOps(t, postgres, { ...env, OPS_INVENTORY })
    const message = await start.then(() => 'started', messageOf)
    const [, rest = message] = message.split('is wrong: /services/0/checks/0')
    const about = rest.startsWith('/') ? rest.slice(1) : rest
    if (typeof said === 'string') t.equal(about, said, JSON.stringify(check))
    else t.match(about, said, JSON.stringify(check))
    t.notMatch(message, password)
  }
})

t.test('checks of all kinds are taken', async (t) => {
  const checks = [
    { ...disk, every: '10s', retries: 0 },
    { ...disk, name: 'rare', every: '24h', retries: 10 },
    { ...disk, name: 'seconds', every: 10.5 },
    { ...http, method: 'POST', body: 'x', headers: { accept: '*/*' }, status: [200, '300-399'] },
    { ...http, name: 'tls', ca: '/ca.pem', days: 0, members: ['a.b-c.0=x=y'], pattern: 'a*b' },
    { ...tcp, send: 'PING', contains: 'PONG' },
    { ...dns, record: 'TXT', server: '[2001:db8::53]:5353', value: 'x' },
    { type: 'ping', host: '2001:db8::1', port: 22 },
    { ...program, min: 0, max: 0 },
    { ...age, exists: false },
    { ...age, name: 'there', exists: true, min_bytes: 1 },
    { type: 'container' },
    { ...tcp, name: 'told', investigate: true },
    { ...disk, name: 'full', level: 'critical', investigate: 3 },
    { ...disk, name: 'quiet', investigate: false },
    { type: 'container', container: 'shop-web_1.a', log_lines: 0, socket: '/run/x.sock' },
  ]
  const OPS_INVENTORY = await inventoryFile(t, { services: [{ name: 'shop', checks }] })
  await t.resolves(startOps(t, postgres, { ...env, OPS_INVENTORY }))
})

t.test('how often a check runs, and how often again before it counts', async (t) => {
  t.same(
    [{}, { every: '10s' }, { every: '5m' }, { every: '1h' }, { every: 90 }].map(everySeconds),
    [...[60, 10, 300, 3_600, 90]],
  )
  t.same([{}, { retries: 0 }, { retries: 10 }].map(retriesOf), [1, 0, 10])
})
