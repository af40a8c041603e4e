import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { databaseAnswers } from '../../db/server.ts'
import { systemClock } from '../../kernel/time.ts'
import { percentDecoded } from '../../kernel/text.ts'
import { opsFault } from '../../routes/ops/faults.ts'
import { opsRoutes, unmatchedOps } from '../../routes/ops/routes.ts'
import type { Config } from '../../services/ops/config.ts'
import { openInventory } from '../../services/ops/inventory/inventory.ts'
import { openOps } from '../../services/ops/open.ts'
import { openPrices } from '../../services/ops/runners/budget.ts'
import { AGENT_SECRETS } from '../../services/ops/runners/cli.ts'
import { openSandbox } from '../../services/ops/tools/sandbox.ts'
import { controlPath } from '../control.ts'
import { NO_ROUTE } from '../listeners.ts'
import { ownHosts } from '../addresses.ts'
import { endpointOf, openRunners } from './ops-runners.ts'
import type { OpenService } from './service.ts'
import type { ConfigSource } from '../configuration.ts'

/** The ops service, made from the configuration. */
export const openOpsService: OpenService = async (context) => {
  const { db, log, metrics, config, version, addresses } = context
  const inventory = await openInventory({
    file: () => config.current.OPS_INVENTORY,
    addresses,
    isOurs: ownHosts(
      () => [...addresses().values()],
      () => '',
    ),
    dataDirectory: config.current.GATEHOUSE_DATA_DIR,
    log,
  })
  const secrets = followSecrets(config)
  const prices = await openPrices(() => config.current.OPS_PRICES, log)
  const baseUrl = (): string => config.current.OPS_BASE_URL ?? addresses().get('ops') ?? ''
  const { readonly: commands = [] } = await inventory.current()
  const sandbox = openSandbox({
    log,
    unsandboxed: () => config.current.OPS_UNSANDBOXED,
    ownSockets: () => [controlPath(config.current.GATEHOUSE_DATA_DIR), ...unixPaths(addresses())],
  })
  const ops = await openOps({
    ...{ db, log, metrics, clock: systemClock },
    configured: () => configured(config),
    secrets,
    inventory,
    keptDays: () => ({
      sessions: config.current.OPS_RETENTION_DAYS,
      lines: config.current.OPS_LINES_RETENTION_DAYS,
    }),
    runner: openRunners(context, inventory, secrets, sandbox, prices),
    async synthesis({ tier1_model }) {
      const model = config.current.OPS_WEBHOOK_MODEL ?? tier1_model
      return {
        ...{ model, endpoint: endpointOf(config), price: await prices.of(model) },
        dayBudget: config.current.OPS_DAY_BUDGET_USD,
        systemPrompt: config.current.OPS_WEBHOOK_SYSTEM_PROMPT,
      }
    },
    random: randomBytes,
    notifyUrl: () => config.current.OPS_NOTIFY_URL,
    baseUrl,
  })
  return {
    name: 'ops',
    parts() {
      const chatKey = (): string | undefined => config.current.OPS_CHAT_API_KEY
      const options = { ops, version, baseUrl, chatKey }
      const routes = opsRoutes(options, () => databaseAnswers(db))
      return { routes, faultReply: opsFault, noRoute: NO_ROUTE, unmatched: unmatchedOps }
    },
    begin() {
      ops.begin()
      // At the start, so that the log says early that the commands of the inventory are off.
      if (commands.length > 0) void sandbox.prepare()
    },
    endStreams() {
      ops.lines.close()
      // Before sessions: a session that can't start any more is no reason to acknowledge an alert.
      void ops.alerts.close()
      // It needs seconds to stop its children: they run while the listeners finish.
      void ops.sessions.close()
    },
    close: () => ops.close(),
  }
}

/** The paths of the unix sockets among addresses of listeners. */
function unixPaths(addresses: ReadonlyMap<string, string>): readonly string[] {
  const unix = [...addresses.values()].filter((address) => address.startsWith('unix:'))
  return unix.map((address) => address.slice('unix:'.length))
}

/** What flags, environment and defaults say of the values that PUT config may change, and of the others. */
function configured({ current }: ConfigSource): Config {
  const within = (name: string): string => join(current.GATEHOUSE_DATA_DIR, 'ops', name)
  return {
    interval: current.OPS_INTERVAL,
    tier1_model: current.OPS_TIER1_MODEL,
    tier2_model: current.OPS_TIER2_MODEL,
    tier3_model: current.OPS_TIER3_MODEL,
    dry_run: current.OPS_DRY_RUN,
    max_tier: current.OPS_MAX_TIER,
    state_dir: current.OPS_STATE_DIR ?? within('state'),
    results_dir: current.OPS_RESULTS_DIR ?? within('results'),
    repos_dir: current.OPS_REPOS_DIR ?? within('repos'),
  }
}

/** The present secrets: the same array until the configuration is loaded again. */
function followSecrets(config: ConfigSource): () => readonly string[] {
  let { origins } = config
  let secrets = secretsOf(config)
  return () => {
    if (config.origins !== origins) {
      origins = config.origins
      secrets = secretsOf(config)
    }
    return secrets
  }
}

/** The text of every secret variable that is set, the password in the database's URL, and the agent's keys. */
function secretsOf({ origins, environment }: ConfigSource): readonly string[] {
  const secrets = AGENT_SECRETS.flatMap((name) => environment[name] ?? [])
  for (const { secret, text } of origins.values()) {
    if (!secret) continue
    secrets.push(text)
    const password = URL.canParse(text) ? new URL(text).password : ''
    if (password !== '') secrets.push(password, percentDecoded(password) ?? password)
  }
  return secrets
}
