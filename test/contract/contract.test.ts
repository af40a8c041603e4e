import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { SIGNED_ENV } from '../helpers/hooks.ts'
import { startServer } from '../helpers/server.ts'
import { DECISIONS } from './decisions.ts'
import { checkRows } from './frame.ts'
import { HOOKS, openHooks } from './hooks.ts'
import { LINKS, openLinks } from './links.ts'
import { OPS, openOps, opsEnv } from './ops.ts'

// One server has the three services, as people run it. Each row finds what is its own.
const ops = await opsEnv(t)
const env = {
  ...SIGNED_ENV,
  ...(await postgres.env(t)),
  ...ops.env,
  HOOKS_MAX_BODY: '64KiB',
}
const server = await startServer(t, { env })

await t.test('decisions', async (t) => checkRows(t, DECISIONS, server))
await t.test('hooks', async (t) => checkRows(t, HOOKS, await openHooks(server)))
await t.test('links', async (t) => checkRows(t, LINKS, await openLinks(server, env)))
await t.test('ops', async (t) => checkRows(t, OPS, await openOps(server, env, ops.briefs)))
