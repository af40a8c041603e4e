import { t } from 'tap'
import type { Test } from 'tap'
import { pruneUnderLoad } from '../fixtures/hooks-pruning.ts'
import { eachBackend } from '../helpers/backends.ts'

await eachBackend(t, 'ingestion goes on while 20,000 events are pruned', (t: Test, backend) =>
  pruneUnderLoad(t, backend, { old: 20_000, clients: 12, behind: 800, deliveries: 100 }),
)
