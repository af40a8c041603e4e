import { verify } from '@octokit/webhooks-methods'
import { hostname } from 'node:os'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { attemptsIn, attemptsOf, replay, startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import {
  SECRETS,
  SIGNED_ENV,
  addProvider,
  deliver,
  post,
  postForm,
  startHooks,
} from '../helpers/hooks.ts'
import type { Ack } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const REFUSED = {
  outcome: 'refused',
  answer: 'none',
  detail:
    'the target is not on the public internet; an operator can allow it in HOOKS_REPLAY_TARGETS',
}

/** Sends an event of an open provider. */
async function anEvent(base: string): Promise<number> {
  return (await post(base, 'generic/open', '{}')).json<Ack>().id
}

await t.test('targets that are not allowed', async (t) => {
  const receiver = await startReceiver(t)
  const { port } = receiver
  const elsewhere = `127.0.0.1:${port === 65_535 ? 1 : port + 1}, allowed.test:${port}`
  const { base, env } = await startHooks(t, postgres, { HOOKS_REPLAY_TARGETS: elsewhere })
  await addProvider(base, 'open', { open: true })

  await t.test('loopback, however it is spelled, and names of this host', async (t) => {
    const id = await anEvent(base)
    const hosts = [
      '127.0.0.1',
      '127.1',
      '127.8.8.8',
      '2130706433',
      '0x7f000001',
      '0.0.0.0',
      '[::1]',
      '[::]',
      '[::ffff:127.0.0.1]',
      'localhost',
      'LOCALHOST',
      hostname(),
    ]
    for (const host of hosts) {
      const answer = await replay(base, id, `http://${host}:${port}/`)
      t.equal(answer.status, 200, host)
      const [attempt] = attemptsIn(answer.text)
      // A machine may not know its own name, or not in IPv6: then there is nothing to refuse.
      if (host === hostname()) t.not(attempt?.outcome, 'delivered', host)
      else t.match(attempt, REFUSED, host)
    }
    t.equal((await attemptsOf(base, id)).length, hosts.length, 'each is recorded')
    t.equal(receiver.connections(), 0, 'and none was connected to')
  })

  await t.test('private, link-local, metadata and reserved addresses', async (t) => {
    const id = await anEvent(base)
    const hosts = ['10.0.0.1', '169.254.169.254', '[fd00:ec2::254]', '224.0.0.1']
    for (const host of hosts) {
      const answer = await replay(base, id, `http://${host}/latest/meta-data/`)
      t.match(attemptsIn(answer.text)[0], REFUSED, host)
      t.match(answer.text, /role="status">Not delivered: the target is not on the public internet/)
    }
  })

  await t.test('the default target is allowed, its neighbours are not', async (t) => {
    const id = await anEvent(base)
    const wanted = `http://localhost:${port}/hook?a=1`
    await postForm(base, '/settings', { replay_default_target: wanted })
    t.match(attemptsIn((await replay(base, id)).text), [{ outcome: 'delivered', target: wanted }])
    t.equal(receiver.connections(), 1, 'the listener does count')
    const same = `http://LOCALHOST:${port}/hook?a=1`
    t.match(attemptsIn((await replay(base, id, same)).text)[0], { outcome: 'delivered' })
    const others = [
      `http://localhost:${port}/hook`,
      `http://localhost:${port}/hook?a=2`,
      `http://127.0.0.1:${port}/hook?a=1`,
      `https://localhost:${port}/hook?a=1`,
    ]
    for (const other of others) {
      t.match(attemptsIn((await replay(base, id, other)).text)[0], REFUSED, other)
    }
    await postForm(base, '/settings', { replay_default_target: '' })
    t.match(attemptsIn((await replay(base, id, wanted)).text)[0], REFUSED, 'no longer the default')
    t.equal(receiver.connections(), 2)
  })

  await t.test('attempts are bounded and go with their event', async (t) => {
    const [old, kept] = [await anEvent(base), await anEvent(base)]
    for (let n = 0; n < 3; n++) await replay(base, old, 'http://10.0.0.1/')
    await postgres.query(
      env,
      `insert into hooks.attempts (event_id, kind, target, outcome, ms, at)
       select $1, 'replay', 'http://10.0.0.1/', 'refused', 0, now() from generate_series(1, 210)`,
      [kept],
    )
    await replay(base, kept, 'http://10.0.0.1/last')
    const listed = await attemptsOf(base, kept)
    t.equal(listed.length, 50)
    t.match(listed[0], { target: 'http://10.0.0.1/last' }, 'newest first')
    t.equal((await attemptsOf(base, old)).length, 3)

    await postForm(base, '/settings', { retention_max_rows: '1' })
    const page = `${base}/log/${old}`
    await until(async () => (await request(page)).status === 404, 'retention to remove the event')
    t.equal((await replay(base, old, 'http://10.0.0.1/')).status, 404)
    const counts = 'select event_id::int as id, count(*)::int as n from hooks.attempts group by 1'
    t.same(await postgres.query(env, counts), [{ id: kept, n: 200 }])
  })
})

await t.test('the present secret signs what came before', async (t: Test) => {
  const env = { ...SIGNED_ENV, ...(await postgres.env(t)) }
  const first = await startServer(t, { services: ['hooks'], env })
  const { id } = (await deliver(first.hooks, 'code_host', '{"a":1}')).json<Ack>()
  await first.stop()

  const receiver = await startReceiver(t)
  const fresh = secret('code-host-fresh')
  const allowed = { HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}` }
  const rotated = {
    ...env,
    ...allowed,
    HOOKS_CODE_HOST_SECRET: fresh,
    HOOKS_CODE_HOST_SECRET_PREVIOUS: SECRETS.code_host,
  }
  const second = await startServer(t, { services: ['hooks'], env: rotated })
  t.match(attemptsIn((await replay(second.hooks, id, receiver.url)).text), [
    { outcome: 'delivered' },
  ])
  const got = receiver.received[0]
  const signature = String(got?.headers['x-codehost-signature-256'])
  t.equal(signature, got?.headers['x-hub-signature-256'], 'in both spellings')
  t.ok(await verify(fresh, '{"a":1}', signature))
  await second.stop()

  const without = { ...env, ...allowed, HOOKS_CODE_HOST_SECRET: '' }
  const third = await startServer(t, { services: ['hooks'], env: without })
  t.match(attemptsIn((await replay(third.hooks, id, receiver.url)).text), [
    { outcome: 'refused', detail: /secret of the provider is not configured/ },
    { outcome: 'delivered' },
  ])
  t.equal(receiver.connections(), 1, 'nothing is sent unsigned')
})

await t.test('an invalid list of targets stops the start', async (t) => {
  const env = { HOOKS_REPLAY_TARGETS: 'localhost, http://10.0.0.1' }
  const { code, stderr } = await runCli(['migrate'], { env })
  t.equal(code, 1)
  t.match(
    stderr,
    /^gatehouse: HOOKS_REPLAY_TARGETS is not valid \(entry 2 is no host or host:port\).*\n$/,
  )
})
