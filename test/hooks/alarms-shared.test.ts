import { t } from 'tap'
import type { Test } from 'tap'
import { health, metrics } from '../helpers/alarms-setup.ts'
import { backends } from '../helpers/backends.ts'
import { change } from '../helpers/senders-setup.ts'
import { startServer } from '../helpers/server.ts'
import { deliver, post, SIGNED_ENV } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

t.test('when a sender was heard last is known after retention', async (t: Test) => {
  const [, backend] = backends
  const env = { ...SIGNED_ENV, ...(await backend.env(t)) }
  const server = await startServer(t, { services: ['hooks'], env })
  const base = server.hooks
  t.equal((await deliver(base, 'chat', '{}')).status, 202)
  const set = { expected_interval: '1h' }
  t.equal((await change(base, 'chat', 'alarm', set)).status, 200)
  // As if it had been set long ago, and the only event pruned.
  await backend.query(env, `update hooks.providers set watched_since = now() - interval '3 days'`)
  await backend.query(env, 'delete from hooks.events')
  await until(async () => (await metrics(base))['chat silent'] === 0, 'the alarm to be set')
  t.equal(await health(base), '200 ok', 'heard within the hour, as the counters know')
  await backend.query(env, `update hooks.activity set minute = minute - interval '2 hours'`)
  await until(async () => (await metrics(base))['chat silent'] === 1, 'the alarm')
  t.equal(await health(base), '200 degraded; no event for longer than expected: 1 provider')
})

t.test('an alarm that one instance raises shows on every other', async (t: Test) => {
  const [, backend] = backends
  const env = { ...SIGNED_ENV, ...(await backend.env(t)) }
  const one = await startServer(t, { services: ['hooks'], env })
  const two = await startServer(t, { services: ['hooks'], env })
  await change(one.hooks, 'payments', 'alarm', { rejection_burst: '2' })
  await post(one.hooks, 'payments', '{}')
  await post(two.hooks, 'payments', '{}')
  for (const { hooks } of [one, two]) {
    await until(async () => (await metrics(hooks))['payments burst'] === 1, 'the alarm')
    t.equal(await health(hooks), '200 degraded; many rejected deliveries: 1 provider')
  }
})
