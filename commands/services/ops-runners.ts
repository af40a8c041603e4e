import type { Executor } from '../../db/client.ts'
import { configQueries } from '../../db/ops/config.ts'
import { systemClock } from '../../kernel/time.ts'
import type { InventorySource } from '../../services/ops/inventory.ts'
import { createRedact } from '../../services/ops/redact.ts'
import { createCliRunner } from '../../services/ops/runners/cli.ts'
import type { Endpoint } from '../../services/ops/runners/model-chat.ts'
import type { PriceSource } from '../../services/ops/runners/budget.ts'
import { createModelRunner } from '../../services/ops/runners/model.ts'
import { createProbe } from '../../services/ops/runners/probe.ts'
import type { Runner } from '../../services/ops/runners/runner.ts'
import type { Sandbox } from '../../services/ops/tools/sandbox.ts'
import type { ServiceContext } from './service.ts'

/** Gives the runner of a new session, as the configuration says at that moment. */
export function openRunners(
  { db, log, config }: Pick<ServiceContext, 'db' | 'log' | 'config'>,
  inventory: InventorySource,
  secrets: () => readonly string[],
  sandbox: Sandbox,
  prices: PriceSource,
): () => Runner {
  const redact = createRedact(secrets)
  const probe = createProbe({ db, clock: systemClock, inventory, redact })
  const shared = {
    ...{ db, log, inventory, clock: systemClock, redact, sandbox },
    dryRun: async (tx: Executor) =>
      (await configQueries.readSettings(tx, {})).dry_run ?? config.current.OPS_DRY_RUN,
    budgets: () => ({
      session: config.current.OPS_SESSION_BUDGET_USD,
      day: config.current.OPS_DAY_BUDGET_USD,
    }),
    maxTurns: () => config.current.OPS_MAX_TURNS,
  }
  const model = createModelRunner({ ...shared, endpoint: () => endpointOf(config), prices })
  const cli = createCliRunner({ ...shared, command: () => config.current.OPS_AGENT_COMMAND })
  return () => {
    const { OPS_RUNNER: named, OPS_MODEL_URL: url } = config.current
    if (named === 'model') return model
    if (named === 'cli') return cli
    return named === 'auto' && url !== undefined ? model : probe
  }
}

/** The configured model endpoint; undefined without one. */
export function endpointOf({ current }: ServiceContext['config']): Endpoint | undefined {
  const { OPS_MODEL_URL: url, OPS_MODEL_KEY: key } = current
  return url === undefined ? undefined : { url, key }
}
