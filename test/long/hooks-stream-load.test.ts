import { t } from 'tap'
import { checkStreamClients } from '../fixtures/stream-clients.ts'
import { backends } from '../helpers/backends.ts'

const [embedded, postgres] = backends
const LOAD = { servers: 1, clients: 200, events: 2_000, portion: 250 }

// The full size of a part of test/hooks/stream.test.ts.
await t.test('200 clients see each event once and in order (embedded)', (t) =>
  checkStreamClients(t, embedded, LOAD),
)
await t.test('200 clients see each event once and in order (postgres)', (t) =>
  checkStreamClients(t, postgres, LOAD),
)
await t.test('200 clients of two servers see each event once and in order', (t) =>
  checkStreamClients(t, postgres, { ...LOAD, servers: 2 }),
)
