import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { SIGNED_ENV } from '../helpers/hooks.ts'
import { startServer } from '../helpers/server.ts'
import { checkRows } from './frame.ts'
import { HOOKS, openHooks } from './hooks.ts'

// One server has the three services, as people run it. Each row finds what is its own.
const [, postgres] = backends
const env = { ...SIGNED_ENV, ...(await postgres.env(t)), HOOKS_MAX_BODY: '64KiB' }
const server = await startServer(t, { env })

await t.test('hooks', async (t) => checkRows(t, HOOKS, await openHooks(server)))
