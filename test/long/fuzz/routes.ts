import { randomBytes } from 'node:crypto'
import type { OpenService } from '../../../commands/listeners.ts'
import { migrate } from '../../../db/migrate.ts'
import { openDatabase } from '../../../db/open.ts'
import { openConfiguration } from '../../../commands/configuration.ts'
import { createLog } from '../../../kernel/log.ts'
import { createMetrics } from '../../../kernel/metrics.ts'
import { createRouter, type FindRoute, type Route } from '../../../kernel/http/router.ts'
import { metricsRoute } from '../../../routes/monitoring.ts'
import { configuredSecrets } from '../../../services/hooks/secrets.ts'
import { backends } from '../../helpers/backends.ts'
import type { Owner } from '../../helpers/owner.ts'

/** The routes of a service, with the one that answers where the others do not, and what finds one. */
export type RouteTable = { readonly routes: readonly Route[]; readonly find: FindRoute }

/**
 * The routes that a service has, from the service itself: it is opened as `serve` opens it, on a
 * database of its own, and asked what its listener would serve.
 */
export async function routesOf(t: Owner, open: OpenService): Promise<RouteTable> {
  const env = await backends[1].env(t)
  const config = openConfiguration({
    flags: env,
    environment: {},
    envFile: undefined,
    collects: true,
  })
  const log = createLog(
    () => undefined,
    () => new Date(),
  )
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  const database = await openDatabase({ url, dataDirectory }, log)
  try {
    await migrate(database.db)
    const metrics = createMetrics()
    const service = await open({
      ...{ config, log, metrics, version: 'test', db: database.db, backend: 'postgresql' },
      secrets: configuredSecrets(config, randomBytes),
      addresses: () => new Map(),
    })
    const parts = service.parts(() => '')
    const table = [...parts.routes, metricsRoute(metrics)]
    const find = createRouter(table, parts.unmatched)
    const other = find('GET', '/none')
    await service.close()
    return { routes: other.kind === 'route' ? [...table, other.route] : table, find }
  } finally {
    await database.close()
    config.close()
  }
}
