import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { Webhook } from 'standardwebhooks'
import { onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { addDestination, destination, eventOf, untilListed } from '../helpers/destinations.ts'
import { addProvider, deliver, eventIds, post, startHooks } from '../helpers/hooks.ts'
import type { Ack } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import { attemptsOf, replay, startReceiver } from '../helpers/replays.ts'
import { addSigned, secretKey, sendStandard } from '../helpers/senders.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

const LOCAL = { HOOKS_REPLAY_TARGETS: '127.0.0.1' }

await onPostgres(t, 'what is sent names the installation', async (t: Test, backend) => {
  const variables = { ...LOCAL, GATEHOUSE_SECRET_KEY: secretKey() }
  const { base, env, server } = await startHooks(t, backend, variables)
  await addProvider(base, 'lan', { open: true })

  await t.test('by a key that is the same for each try, and no other', async (t) => {
    const elsewhere = await startHooks(t, backend, variables)
    await addProvider(elsewhere.base, 'lan', { open: true })
    let status = 500
    const receiver = await startReceiver(t, (_, response) => void response.writeHead(status).end())
    const keys = () => receiver.received.map(({ headers }) => String(headers['idempotency-key']))
    const signing = await addSigned(base, 'shop')
    for (const one of [env, elsewhere.env]) await addDestination(one, 'erp', receiver.url)
    const first = (await post(base, 'generic/lan', '{}')).json<Ack>().id
    await untilListed(env, 'erp', { waiting: 1, last_status: 500 })
    status = 204
    await destination(env, 'retry', 'erp')
    await untilListed(env, 'erp', { delivered: 1 })
    const [key = '', again] = keys()
    t.equal(again, key, 'a repeat has the key of its first try')
    t.equal(eventOf(receiver.received[0]), first)
    // As if a backup had been restored, whose next event gets an id that was used before.
    await backend.query(env, `update hooks.events set received_at = now() - interval '1 day'`)
    await backend.query(
      env,
      `insert into hooks.destination_deliveries (destination, event_id, next_at) values ('erp', $1, now())`,
      [first],
    )
    await untilListed(env, 'erp', { delivered: 2 })
    await post(elsewhere.base, 'generic/lan', '{}')
    await untilListed(elsewhere.env, 'erp', { delivered: 1 })
    t.equal(new Set(keys()).size, 3, 'another event or installation has another key')

    const { id } = (await sendStandard(base, 'shop', signing, '{}', { id: 'msg_1' })).json<Ack>()
    await untilListed(env, 'erp', { delivered: 3 })
    const { headers = {}, body = '' } = receiver.received.at(-1) ?? {}
    t.equal(headers['webhook-id'], headers['idempotency-key'], 'signed with this key')
    const given = Object.entries(headers).map(([name, value]) => [name, String(value)])
    new Webhook(signing).verify(body, Object.fromEntries(given))
    t.equal(eventOf({ headers }), id)
    await destination(env, 'remove', 'erp')
  })

  await t.test('so that a delivery that comes back is stored once', async (t) => {
    await addProvider(base, 'back', { open: true })
    await addDestination(env, 'loop', `${base}/webhooks/generic/back`)
    const { id } = (await post(base, 'generic/lan', '{}')).json<Ack>()
    const refused = await until(async () => {
      const [attempt] = await attemptsOf(base, id + 1)
      return attempt
    }, 'the attempt that comes back twice')
    t.match(refused, {
      outcome: 'failed',
      answer: /^403 /,
      body: /was sent from here twice already/,
    })
    t.equal((await attemptsOf(base, id))[0]?.outcome, 'delivered', 'once is no loop')
    t.match(await eventIds(base), [id + 1, id])
    await until(async () => {
      const { text } = await request(`${base}/log?rejected=1`)
      return text.includes('a loop: it was sent from here twice')
    }, 'the refused delivery in the list')
    await destination(env, 'remove', 'loop')

    const receiver = await startReceiver(t)
    const sent = { 'CDN-Loop': 'cdn.test; a="b"' }
    const other = (await post(base, 'generic/lan', '{}', sent)).json<Ack>().id
    await replay(base, other, receiver.url)
    const loop = String(receiver.received[0]?.headers['cdn-loop'])
    t.match(loop, /^cdn\.test; a="b", gatehouse-[0-9a-f]{24}$/, 'behind those before')
    const own = loop.split(', ')[1] ?? ''
    for (const [given, status] of [
      [`${own}`, 202],
      [`${own}0, ${own}, a`, 202],
      [`${own}, a;b=c,${own};d`, 403],
    ] as const) {
      const { status: got } = await post(base, 'generic/lan', '{}', { 'CDN-Loop': given })
      t.equal(got, status, given)
    }
    const signed = await deliver(base, 'code_host', '{}', { 'CDN-Loop': `${own}, ${own}` })
    t.equal(signed.status, 403, 'a signed receiver refuses it, too')
  })

  await t.test('also after a restart', async (t) => {
    const receiver = await startReceiver(t)
    const id = (await post(base, 'generic/lan', '{}')).json<Ack>().id
    await replay(base, id, receiver.url)
    await server.stop()
    const { hooks } = await startServer(t, { services: ['hooks'], env })
    await replay(hooks, id, receiver.url)
    const [first, second] = receiver.received
    t.equal(second?.headers['cdn-loop'], first?.headers['cdn-loop'])
  })

  await t.test('as does a backup, and a target that was only started is empty', async (t) => {
    const file = join(await temporaryFolder(t), 'backup')
    t.match(await runCli(['backup', file], { env }), { code: 0 })
    const started = await startHooks(t, backend)
    await started.server.stop()
    const name = async (of: Env) => backend.query(of, 'select name from hooks.installation')
    t.strictNotSame(await name(started.env), await name(env))
    t.match(await runCli(['restore', file], { env: started.env }), { code: 0 })
    t.same(await name(started.env), await name(env), 'the copy is the same installation')
  })
})
