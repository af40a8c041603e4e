import { t } from 'tap'
import type { Test } from 'tap'
import { pruneUnderLoad } from '../fixtures/hooks-pruning.ts'
import { eachBackend, onPostgres } from '../helpers/backends.ts'
import { addProvider, eventIds, post, postForm, startHooks } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

await eachBackend(t, 'ingestion goes on while 20,000 events are pruned', (t: Test, backend) =>
  pruneUnderLoad(t, backend, { old: 20_000, clients: 12, behind: 800, deliveries: 100 }),
)

await onPostgres(
  t,
  'a log that grows fast does not wait for the hour',
  async (t: Test, backend) => {
    const { base } = await startHooks(t, backend)
    await addProvider(base, 'lan', { open: true })
    await postForm(base, '/settings', { retention_max_rows: '20' })
    const deliver = async (count: number) => {
      for (let n = 0; n < count; n++) await post(base, 'generic/lan', '{}')
    }
    await deliver(40)
    await until(async () => (await eventIds(base)).length === 20, 'the newest 20', 120_000)
    t.pass('within two minutes')
  },
)
