import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { createGuard } from '../../kernel/guard.ts'
import { clientAddress, isLoopback, parseBlocks, redactAddress } from '../../kernel/peers.ts'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { addProvider, shown, startHooks } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'

const [, postgres] = backends

t.test('a trusted proxy names the source', async (t: Test) => {
  const { base, server } = await startHooks(t, postgres, {
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32, 10.0.0.0/8,fd00::/8',
  })
  await addProvider(base, 'lan', { open: true })
  const source = async (forwarded: string | readonly string[], from?: string): Promise<string> => {
    const answer = await request(`${base}/webhooks/generic/lan`, {
      method: 'POST',
      headers: { 'X-Forwarded-For': forwarded },
      body: '{}',
      ...(from === undefined ? {} : { localAddress: from }),
    })
    return (await shown(base, answer.json<Ack>().id)).facts['Source address'] ?? ''
  }
  t.equal(await source('203.0.113.7'), '203.0.113.7')
  t.equal(await source('198.51.100.1, 203.0.113.7'), '203.0.113.7', 'what the proxy saw')
  t.equal(await source('198.51.100.1, 203.0.113.7, 10.1.2.3'), '203.0.113.7', 'over two proxies')
  t.equal(await source('203.0.113.7,fd00::5 , 10.1.2.3'), '203.0.113.7', 'of both families')
  t.equal(await source(['198.51.100.1', '203.0.113.7']), '203.0.113.7', 'in two headers')
  t.equal(await source('10.9.9.9, 10.1.2.3'), '10.9.9.9', 'proxies only')
  t.equal(await source('2001:db8::7'), '2001:db8::7')
  t.equal(await source('[2001:db8::7]:443'), '2001:db8::7', 'with a port')
  t.equal(await source('203.0.113.7:5555'), '203.0.113.7', 'with a port')
  t.equal(await source('203.0.113.7, unknown'), '127.0.0.1', 'no address ends the search')
  t.equal(await source(''), '127.0.0.1')
  t.equal(await source('203.0.113.7', '127.0.0.2'), '127.0.0.2', 'a peer that is no trusted proxy')
  t.equal(
    (await request(`${base}/log`, { headers: { 'X-Forwarded-For': '203.0.113.7' } })).status,
    200,
  )
  t.match(server.logs().join('\n'), /"client":"203\.0\.113\.7"/)
})

t.test('an address beyond loopback needs a trusted proxy', async (t: Test) => {
  const folder = join(await temporaryFolder(t), 'data')
  const env = { GATEHOUSE_DATA_DIR: folder, LINKS_ADDR: '127.0.0.1:0', OPS_ADDR: '127.0.0.1:0' }
  for (const address of ['0.0.0.0:0', '[::]:0', '192.0.2.1:0']) {
    const ended = await runCli(['serve', 'links', 'hooks'], {
      env: { ...env, HOOKS_ADDR: address },
    })
    t.equal(ended.code, 1, address)
    t.equal(ended.stdout, '', address)
    const lines = ended.stderr.split('\n').filter((line) => line.startsWith('gatehouse: '))
    t.equal(lines.length, 1, address)
    t.match(lines[0], /HOOKS_ADDR is beyond loopback: set GATEHOUSE_TRUSTED_PROXIES/, address)
  }
  t.notOk(existsSync(folder), 'nothing was written')
  for (const blocks of ['everybody', '10.0.0.0/33', '10.0.0.0/8;fd00::/8', '300.1.1.1']) {
    const bad = { ...env, GATEHOUSE_TRUSTED_PROXIES: blocks }
    const ended = await runCli(['serve', 'hooks'], { env: bad })
    t.match(ended, { code: 1, stdout: '', stderr: /^gatehouse: GATEHOUSE_TRUSTED_PROXIES .*CIDR/ })
    t.equal(ended.stderr.trim().split('\n').length, 1, 'one line')
  }
})

// A listener of a test is bound to loopback, where no peer is foreign: these are asked directly.

t.test('pages are for loopback peers and trusted proxies', async (t) => {
  const trustedProxies = parseBlocks(['10.0.0.0/8', 'fd00::/8'])
  const guard = createGuard({
    ...{ hosts: ['hooks.example'], trustedProxies },
    userHeader: () => 'remote-email',
  })
  const httpVersion = '1.1'
  const answer = (peer: string, host = 'hooks.example', method = 'GET'): number | undefined =>
    guard({ method, headers: { host }, httpVersion, peer })?.status
  for (const peer of ['127.0.0.1', '127.255.0.9', '::1', '10.200.0.1', 'fd00::1']) {
    t.equal(answer(peer), undefined, peer)
    t.equal(answer(peer, 'hooks.example', 'POST'), undefined, `${peer}, POST`)
    t.equal(answer(peer, 'evil.example'), 403, `${peer}, another Host`)
  }
  for (const peer of [
    '203.0.113.7',
    '11.0.0.1',
    '128.0.0.1',
    '::2',
    'fc00::1',
    '192.168.1.1',
    '',
  ]) {
    t.equal(answer(peer), 403, peer)
    t.equal(answer(peer, 'localhost'), 403, `${peer}, a loopback name`)
    t.equal(answer(peer, 'localhost', 'HEAD'), 403, `${peer}, HEAD`)
  }
  const asked = { method: 'POST', headers: { host: 'evil.example' }, httpVersion }
  const said = guard({ ...asked, peer: '203.0.113.7' })
  t.match(said?.detail, /address/, 'the peer is checked first')
})

t.test('loopback addresses', async (t) => {
  for (const address of ['127.0.0.1', '127.1.2.3', '::1']) t.ok(isLoopback(address), address)
  for (const address of ['128.0.0.1', '0.0.0.0', '::', '::2', 'localhost', '']) {
    t.notOk(isLoopback(address), address)
  }
})

t.test('the client of a foreign peer is that peer, whatever it says', async (t) => {
  const trusted = parseBlocks(['10.0.0.0/8'])
  t.equal(clientAddress('203.0.113.7', '127.0.0.1', trusted), '203.0.113.7')
  t.equal(clientAddress('203.0.113.7', undefined, trusted), '203.0.113.7')
  t.equal(clientAddress('10.0.0.1', '127.0.0.1', trusted), '127.0.0.1')
  t.equal(clientAddress('10.0.0.1', '198.51.100.9, ::ffff:203.0.113.7', trusted), '203.0.113.7')
  t.equal(clientAddress('10.0.0.1', '203.0.113.7, 10.0.0.2, junk', trusted), '10.0.0.1')
  t.equal(clientAddress('10.0.0.1', '203.0.113.7, ', trusted), '10.0.0.1', 'an empty entry')
  t.equal(
    clientAddress('127.0.0.1', '203.0.113.7', () => false),
    '127.0.0.1',
  )
})

t.test('a refused source is kept as its network', async (t) => {
  t.equal(redactAddress('203.0.113.7'), '203.0.113.0/24')
  t.equal(redactAddress('2001:db8:1:2:3:4:5:6'), '2001:db8:1::/48')
  t.equal(redactAddress('2001:db8::6'), '2001:db8::/48')
  t.equal(redactAddress('::1'), '::/48')
  t.equal(redactAddress('no address'), 'unknown')
})

t.test('blocks that are none are refused', async (t) => {
  for (const block of [
    '',
    '10.0.0.0/33',
    'fd00::/129',
    '10.0.0/8',
    '10.0.0.0/',
    '10.0.0.0/x',
    '10.0.0.0/8/9',
    'x/8',
  ]) {
    t.throws(() => parseBlocks([block]), { name: 'RangeError' }, `"${block}"`)
  }
})
