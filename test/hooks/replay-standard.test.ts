import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { t } from 'tap'
import { attemptsIn, replay } from '../fixtures/replay-setup.ts'
import { now, post, startHooks } from '../fixtures/signing-setup.ts'
import type { Ack } from '../fixtures/signing-setup.ts'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { keepSecret } from '../helpers/secrets.ts'

t.test('a receiver of Standard Webhooks accepts a replay', async (t) => {
  const [embedded] = backends
  const receiver = await startReceiver(t)
  const { base, env } = await startHooks(t, embedded, {
    GATEHOUSE_SECRET_KEY: keepSecret('box', randomBytes(32).toString('base64')),
    HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
  })
  const add = ['provider', 'add', 'shop', '--signed', '--enable']
  const { stdout } = await runCli(add, { env, secretShown: true })
  const webhook = new Webhook(keepSecret('shop', stdout.trim()))

  const body = '{"order": "ü"}'
  const at = now() - 250
  const sent = await post(base, 'generic/shop', body, {
    'Webhook-Id': 'msg_1',
    'Webhook-Timestamp': String(at),
    'Webhook-Signature': webhook.sign('msg_1', new Date(at * 1000), body),
  })
  const { id, verified } = sent.json<Ack>()
  t.ok(verified)
  t.match(attemptsIn((await replay(base, id, receiver.url)).text), [{ outcome: 'delivered' }])
  const headers = receiver.received[0]?.headers
  t.equal(headers?.['webhook-id'], 'msg_1', 'the delivery keeps its id')
  t.ok(Math.abs(Number(headers?.['webhook-timestamp']) - now()) < 60, 'signed now')
  const got = receiver.received[0]?.body.toString() ?? ''
  t.same(webhook.verify(got, headers as Record<string, string>), { order: 'ü' })
  t.throws(
    () => webhook.verify(`${got} `, headers as Record<string, string>),
    'and only these bytes',
  )
})
