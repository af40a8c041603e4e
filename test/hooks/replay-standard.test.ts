import { t } from 'tap'
import type { Test } from 'tap'
import { Webhook } from 'standardwebhooks'
import { backends } from '../helpers/backends.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { replay } from '../helpers/replay-setup.ts'
import {
  addSigned,
  change,
  secretKey,
  sendStandard,
  signingSecret,
} from '../helpers/senders-setup.ts'
import { now, startHooks } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'

t.test('an event is sent on signed anew, with the present secret', async (t: Test) => {
  let present = ''
  const receiver = await startReceiver(t, (got, response) => {
    const headers = Object.entries(got.headers).map(([name, value]) => [name, String(value)])
    let good = true
    try {
      new Webhook(present).verify(got.body, Object.fromEntries(headers))
    } catch {
      good = false
    }
    response.writeHead(good ? 204 : 401).end()
  })
  const { base } = await startHooks(t, backends[0], {
    GATEHOUSE_SECRET_KEY: secretKey(),
    HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
  })
  const signing = await addSigned(base, 'shop')
  const options = { id: 'msg_kept', at: now() - 200 }
  const { id } = (await sendStandard(base, 'shop', signing, '{"n":1}', options)).json<Ack>()
  present = signing
  t.match((await replay(base, id, receiver.url)).text, /Delivered: 204/)
  present = signingSecret()
  await change(base, 'generic:shop', 'rotate', { secret: present })
  t.match((await replay(base, id, receiver.url)).text, /Delivered: 204/, 'with the new one')
  for (const { headers, body } of receiver.received) {
    t.equal(headers['webhook-id'], 'msg_kept')
    t.ok(Math.abs(now() - Number(headers['webhook-timestamp'])) < 60, 'a fresh time')
    t.equal(body.toString(), '{"n":1}')
  }
  await change(base, 'generic:shop', 'remove')
  const gone = await replay(base, id, receiver.url)
  t.match(gone.text, /cannot be signed again/, 'without its sender there is no secret')
  t.equal(receiver.received.length, 2)
})
