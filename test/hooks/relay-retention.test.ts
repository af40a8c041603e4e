import { t } from 'tap'
import type { Test } from 'tap'
import { openPeer } from '../fixtures/forward-setup.ts'
import { backends } from '../helpers/backends.ts'
import { startServer } from '../helpers/server.ts'
import { addProvider, eventIds, post, postForm, startHooks } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const target = 'http://localhost:3000/hook'

t.test('forwarders that do not come back are forgotten after 90 days', async (t: Test) => {
  const { base, env, server } = await startHooks(t, postgres)
  await addProvider(base, 'lan', { open: true })
  await post(base, 'generic/lan', '{}')
  const connect = async (at: string, name: string) => {
    const peer = await openPeer(t, at, { name, target, since: '1' })
    return { peer, ready: await peer.next<{ known: boolean }>() }
  }
  const query = (text: string) => postgres.query(env, text)
  const names = async (): Promise<readonly unknown[]> =>
    (await query('select name from hooks.forwarders order by name')).map(({ name }) => name)

  await connect(base, 'idle')
  for (const name of ['gone', 'resting']) {
    const { peer } = await connect(base, name)
    peer.close()
    await peer.closed
  }
  t.same(await names(), ['gone', 'idle', 'resting'])
  await query(`update hooks.forwarders set updated_at = now() - interval '91 days'
                where name in ('gone', 'idle')`)
  await query(`update hooks.forwarders set updated_at = now() - interval '89 days'
                where name = 'resting'`)
  await postForm(base, '/settings', { retention_max_age_days: '30' })
  await until(async () => !(await names()).includes('gone'), 'the forwarder to be forgotten')
  t.same(await names(), ['idle', 'resting'], 'one that is connected stays, however idle')
  const fresh = await query(`select updated_at > now() - interval '1 hour' as fresh
                               from hooks.forwarders order by name`)
  t.same(
    [...fresh].map((row) => ({ ...row })),
    [{ fresh: true }, { fresh: false }],
  )
  t.equal((await connect(base, 'gone')).ready.known, false, 'its name is new')

  await server.stop()
  await query(`update hooks.forwarders set updated_at = now() - interval '91 days'`)
  await query(`update hooks.events set received_at = now() - interval '91 days'`)
  const again = await startServer(t, { services: ['hooks'], env })
  await until(async () => (await eventIds(again.hooks)).length === 0, 'the prune at the start')
  t.same(await names(), ['gone', 'idle', 'resting'], 'at the start each has time to come back')
  t.equal((await connect(again.hooks, 'idle')).ready.known, true)
})
