import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { startProbe } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'

const key = secret('model-key')
const { lookAt } = await startProbe(t, { OPS_RUNNER: 'probe', OPS_MODEL_KEY: key })

t.test('http: a request is sent as it is written', async (t) => {
  const { url, received } = await startReceiver(t)
  const check = { type: 'http', url, timeout_s: 30 }
  const token = secret('bearer')
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const { good } = await lookAt([
    { ...check, name: 'plain' },
    { ...check, name: 'post', method: 'POST', headers, body: '{"ping":"é"}' },
    { ...check, name: 'delete', method: 'DELETE', body: 'all' },
    { ...check, name: 'empty', method: 'PUT' },
    { ...check, name: 'head', method: 'HEAD' },
    { ...check, name: 'agent', headers: { 'User-Agent': 'other' } },
  ])
  t.match(good, { plain: true, post: true, delete: true, empty: true, head: true, agent: true })
  const byMethod = Map.groupBy(received, ({ method }) => method)
  t.match(byMethod.get('POST'), [
    {
      headers: { ...headers, 'user-agent': 'gatehouse-probe' },
      body: Buffer.from('{"ping":"é"}'),
    },
  ])
  t.match(byMethod.get('DELETE'), [
    { headers: { 'content-length': '3' }, body: Buffer.from('all') },
  ])
  t.match(byMethod.get('PUT'), [{ body: Buffer.alloc(0) }])
  t.equal(byMethod.get('HEAD')?.length, 1)
  const agents = byMethod.get('GET')?.map((request) => request.headers['user-agent'])
  t.same(agents?.toSorted(), ['gatehouse-probe', 'other'])
})

t.test('http: statuses, texts, members and time are as expected', async (t) => {
  const json = {
    status: 'ok',
    db: { up: false, pools: [{ free: 3 }] },
    note: `a ${key}`,
    no: null,
  }
  const body = `<h1>Shop</h1> ${'x'.repeat(100)} <p>Basket: 3</p>`
  const { url } = await startReceiver(t, async ({ path }, response) => {
    if (path === '/slow') await new Promise((resolve) => setTimeout(resolve, 60))
    if (path === '/teapot') response.statusCode = 418
    if (path === '/moved') response.writeHead(302, { location: '/nowhere' })
    response.end(path === '/json' ? JSON.stringify(json) : body)
  })
  const check = { type: 'http', url, timeout_s: 30 }
  const member = (name: string, ...members: string[]): object => {
    return { ...check, name, url: `${url}/json`, members }
  }
  const status = (name: string, path: string, status: unknown): object => {
    return { ...check, name, url: `${url}${path}`, status }
  }
  const { good, said } = await lookAt([
    status('one', '/teapot', 418),
    status('range', '/teapot', '400-499'),
    status('list', '/teapot', [200, '300-399', '418']),
    status('other', '/teapot', ['200-299', 301]),
    status('redirect', '/moved', '300-399'),
    { ...check, name: 'pattern', pattern: '*Shop*Basket: *</p>' },
    { ...check, name: 'order', pattern: 'Basket*Shop' },
    { ...check, name: 'twice', pattern: 'Shop*Shop' },
    { ...check, name: 'no star', pattern: 'Basket: 3' },
    member('members', 'status=ok', 'db.up=false', 'db.pools.0.free=3', 'no=null'),
    member('value', 'db.up=true'),
    member('absent', 'db.pools.1.free=3'),
    member('inherited', 'db.constructor=x'),
    member('secret', 'note=b'),
    { ...check, name: 'no JSON', members: ['status=ok'] },
    { ...check, name: 'slow', url: `${url}/slow`, max_ms: 20 },
    { ...check, name: 'slow warning', url: `${url}/slow`, max_ms: 20, level: 'warning' },
    { ...check, name: 'quick', max_ms: 30_000 },
  ])
  const bad = Object.keys(good).filter((name) => good[name] !== true)
  t.match(said, [
    'other: answered 418, expected 200 to 299 or 301',
    'order: answered 200 without a match of "Basket*Shop"',
    'twice: answered 200 without a match of "Shop*Shop"',
    'value: answered 200, db.up is "false", expected "true"',
    'absent: answered 200 without the member db.pools.1.free',
    'inherited: answered 200 without the member db.constructor',
    'secret: answered 200, note is "a «redacted»", expected "b"',
    'no JSON: answered 200, but not with JSON of 256 KiB at most',
    /^slow: answered 200 in \d+ ms, expected 20 ms at most$/,
    /^slow warning: answered 200 in \d+ ms, expected 20 ms at most$/,
  ])
  t.equal(said.length, bad.length)
})

/** Files of an authority, and of a certificate for 127.0.0.1 that it has signed for five days. */
async function makeCertificates(t: Test) {
  const folder = await temporaryFolder(t, 'certificates')
  const file = (name: string): string => join(folder, name)
  const openssl = (...args: readonly string[]): void => {
    const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`)
  }
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const ca = ['-keyout', file('ca.key'), '-out', file('ca.pem'), '-subj', '/CN=Our authority']
  openssl('req', '-x509', ...key, ...ca, '-days', '30')
  const leaf = ['-keyout', file('leaf.key'), '-out', file('leaf.csr'), '-subj', '/CN=shop']
  openssl('req', ...key, ...leaf)
  writeFileSync(file('names'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
  const signed = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial']
  const out = ['-in', file('leaf.csr'), '-extfile', file('names'), '-out', file('leaf.pem')]
  openssl('x509', '-req', ...signed, ...out, '-days', '5')
  writeFileSync(file('none.pem'), 'no certificate')
  return { key: readFileSync(file('leaf.key')), cert: readFileSync(file('leaf.pem')), file }
}

t.test(
  'http and tls: an authority of our own',
  { skip: lacks(deploymentParts.openssl) },
  async (t) => {
    const { key, cert, file } = await makeCertificates(t)
    const server: Server = createServer({ key, cert }, (_, response) => void response.end('ok'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    const { port } = server.address() as AddressInfo
    const check = { type: 'http', url: `https://127.0.0.1:${port}/`, timeout_s: 30 }
    const tls = { type: 'tls', host: '127.0.0.1', port, timeout_s: 30, days: 3 }
    const ca = file('ca.pem')
    const { good, states, said } = await lookAt([
      { ...check, name: 'foreign' },
      { ...check, name: 'known', ca },
      { ...check, name: 'insecure', insecure: true },
      { ...check, name: 'long enough', ca, days: 3 },
      { ...check, name: 'too short', ca, days: 14 },
      { ...check, name: 'insecure, too short', insecure: true, days: 14 },
      { ...check, name: 'no authority', ca: file('none.pem') },
      { ...check, name: 'no file', ca: file('nothing.pem') },
      { ...tls, name: 'tls foreign' },
      { ...tls, name: 'tls known', ca },
      { ...tls, name: 'tls too short', ca, days: 14 },
      { ...tls, name: 'tls no file', ca: file('nothing.pem') },
    ])
    t.match(good, { known: true, insecure: true, 'long enough': true, 'tls known': true })
    t.match(states, { 'no file': 'unknown', 'no authority': 'unknown', 'tls no file': 'unknown' })
    const short = 'the certificate is valid for 4 more days, expected 14'
    const unread = /: not looked at: the authorities of .* can't be read: .*; name a PEM/
    t.match(said, [
      /^foreign: unable to verify the first certificate/,
      `too short: answered 200, ${short}`,
      `insecure, too short: answered 200, ${short}`,
      unread,
      unread,
      'tls foreign: the certificate is not trusted: UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      `tls too short: ${short}`,
      unread,
    ])
    t.equal(said.length, 8)
  },
)
