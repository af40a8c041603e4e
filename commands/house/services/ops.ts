import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { freeBytes } from '../../../db/disk.ts'
import { databaseAnswers } from '../../../db/server.ts'
import type { Executor } from '../../../db/client.ts'
import { configQueries } from '../../../db/ops/config.ts'
import { opsFault } from '../../../routes/ops/faults.ts'
import type { OpsApp } from '../../../routes/ops/kit.ts'
import { opsRoutes, opsFallback } from '../../../routes/ops/routes.ts'
import { openAssistants } from '../../../services/ops/assistants/assistants/tools.ts'
import type { Config } from '../../../services/ops/config.ts'
import { openCheckRegistry } from '../../../services/ops/watch/checks/registry.ts'
import {
  openInventory,
  type InventorySource,
} from '../../../services/ops/watch/inventory/inventory.ts'
import { openOps } from '../../../services/ops/open.ts'
import { openRunbooks, type RunbookSource } from '../../../services/ops/watch/runbooks/runbooks.ts'
import { createRedact } from '../../../services/ops/redact.ts'
import { openPrices, type PriceSource } from '../../../services/ops/agent/runners/budget.ts'
import { createCliRunner } from '../../../services/ops/agent/runners/cli.ts'
import type { Endpoint } from '../../../services/ops/agent/runners/model-chat.ts'
import { readHostFacts } from '../../../services/ops/agent/runners/host-facts.ts'
import { createModelRunner } from '../../../services/ops/agent/runners/model.ts'
import { createProbe } from '../../../services/ops/agent/runners/probe.ts'
import type { Runner } from '../../../services/ops/agent/runners/runner.ts'
import { openOffers, type Offers } from '../../../services/ops/agent/tools/offers.ts'
import { openSandbox, type Sandbox } from '../../../services/ops/agent/tools/sandbox.ts'
import { withNote } from '../../../services/ops/watch/checks/hardening.ts'
import {
  listeningUrl,
  ownHosts,
  placeOf,
  runningServices,
  type ConfigSource,
  type ServiceName,
} from '../../frame/configuration.ts'
import { followSecrets } from '../secrets.ts'
import type { OpenService, ServiceContext } from '../listeners.ts'

/** The ops service, made from the configuration. */
export const openService: OpenService = async (context) => {
  const { db, clock, log, config, version, addresses } = context
  const { box } = context.secrets
  const registry = await openCheckRegistry({ db, clock, log, box })
  const inventory = await openInventory({
    file: () => config.current.OPS_INVENTORY,
    addresses,
    byHand: registry.services,
    isOurs: ownHosts(() => [...addresses().values()]),
    dataDirectory: config.current.GATEHOUSE_DATA_DIR,
    log,
  })
  const secrets = joined(followSecrets(config), registry.secrets)
  const runbooks = openRunbooks(() => config.current.OPS_RUNBOOKS, log)
  // Logs at the start which files are left out.
  await runbooks.current()
  const prices = await openPrices(() => config.current.OPS_PRICES, log)
  const siteUrl = (site: ServiceName) => {
    return placeOf(site, config).baseUrl ?? addresses().get(site) ?? ''
  }
  const baseUrl = () => siteUrl('ops')
  const chatKey = () => config.current.OPS_CHAT_API_KEY
  const { readonly: commands = [] } = await inventory.current()
  const sandbox = openSandbox({
    log,
    unsandboxed: () => config.current.OPS_UNSANDBOXED,
    hidden: () => hiddenPaths(context),
    explain: withNote,
  })
  const offers = openOffers(randomBytes, version)
  const ops = await openOps({
    ...context,
    configured: () => configured(config),
    patience: {
      firstMs: () => config.current.OPS_FIRST_OUTPUT_S * 1_000,
      idleMs: () => config.current.OPS_IDLE_S * 1_000,
    },
    secrets,
    box,
    registry,
    inventory,
    keptDays: () => ({
      sessions: config.current.OPS_RETENTION_DAYS,
      lines: config.current.OPS_LINES_RETENTION_DAYS,
    }),
    dryRun: dryRunOf(config),
    runner: openRunners(context, inventory, runbooks, secrets, sandbox, prices, offers),
    synthesis: ({ tier1_model }) => synthesisOf(config, prices, tier1_model),
    alertMaxTier: () => config.current.OPS_ALERT_MAX_TIER ?? config.current.OPS_MAX_TIER,
    investigateCooldownS: () => config.current.OPS_INVESTIGATE_COOLDOWN_S,
    dayBudget: () => config.current.OPS_DAY_BUDGET_USD,
    alertRules: () => ({
      hold: config.current.OPS_ALERT_HOLD_S,
      dedup: config.current.OPS_ALERT_DEDUP_S,
      queue: config.current.OPS_ALERT_QUEUE,
    }),
    random: randomBytes,
    notifyUrls: () => config.current.OPS_NOTIFY_URL ?? [],
    secretBox: context.secrets.box,
    statusServices: () => config.current.OPS_STATUS_SERVICES,
    heartbeatUrl: () => config.current.GATEHOUSE_HEARTBEAT_URL,
    siteUrl,
    freeSpace() {
      const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: folder } = config.current
      return url === undefined ? freeBytes(folder) : undefined
    },
  })
  const services = () => runningServices(config, addresses)
  const assistants = openAssistants(ops, version)
  const app: OpsApp = { ops, version, services, baseUrl, chatKey, offers, assistants }
  return {
    name: 'ops',
    routes: opsRoutes(app, () => databaseAnswers(db)),
    faultReply: (...fault) => opsFault(app, ...fault),
    fallback: opsFallback,
    begin() {
      ops.begin()
      // Logs at the start if the commands of the inventory are off.
      if (commands.length > 0) void sandbox.prepare()
    },
    refresh: registry.refresh,
    endStreams() {
      ops.lines.close()
      // Before sessions: an alert whose session can't start any more must not be acknowledged.
      void ops.alerts.close()
      // Stopping child processes takes seconds; meanwhile the listeners finish.
      void ops.sessions.close()
      void ops.approvals.close()
    },
    close: () => ops.close(),
  }
}

/**
 * What commands that a model composed must not see: the embedded database and the control socket,
 * credentials, the environment file, and the unix sockets that this process listens at.
 */
function hiddenPaths({ config, addresses }: ServiceContext): readonly string[] {
  const { GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  const { CREDENTIALS_DIRECTORY: credentials } = config.environment
  const listening = [...addresses().values()].filter((address) => address.startsWith('unix:'))
  const sockets = listening.map((address) => address.slice('unix:'.length))
  const files = [credentials, config.envFile].filter((path) => path !== undefined)
  return [dataDirectory, ...files, ...sockets]
}

/** How briefs of alerts are written. */
async function synthesisOf(config: ConfigSource, prices: PriceSource, tier1_model: string) {
  const { current } = config
  const model = current.OPS_WEBHOOK_MODEL ?? tier1_model
  return {
    model,
    endpoint: endpointOf(config),
    price: await prices.of(model),
    dayBudget: current.OPS_DAY_BUDGET_USD,
    systemPrompt: current.OPS_WEBHOOK_SYSTEM_PROMPT,
    fallback: current.OPS_BRIEF_FALLBACK,
  }
}

/** The config of ops.md as flags, environment and defaults give it. */
function configured({ current }: ConfigSource): Config {
  const within = (name: string) => join(current.GATEHOUSE_DATA_DIR, 'ops', name)
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

/** The secrets of both lists: the same array until one of them is another one. */
function joined(first: () => readonly string[], second: () => readonly string[]) {
  let seen = { first: first(), second: second() }
  let all = [...seen.first, ...seen.second]
  return () => {
    const present = { first: first(), second: second() }
    if (present.first === seen.first && present.second === seen.second) return all
    seen = present
    all = [...seen.first, ...seen.second]
    return all
  }
}

/** Whether operations are only recorded: as saved, or as configured. */
function dryRunOf(config: ConfigSource) {
  return async (tx: Executor): Promise<boolean> => {
    const { dry_run } = await configQueries.readSettings(tx, {})
    return dry_run ?? config.current.OPS_DRY_RUN
  }
}

/** Chooses the runner when a session starts, so that it follows the configuration. */
function openRunners(
  { db, clock, log, config, addresses }: ServiceContext,
  inventory: InventorySource,
  runbooks: RunbookSource,
  secrets: () => readonly string[],
  sandbox: Sandbox,
  prices: PriceSource,
  offers: Offers,
): () => Runner {
  const redact = createRedact(secrets)
  const probe = createProbe({ db, clock, inventory, redact })
  const shared = {
    db,
    log,
    inventory,
    runbooks,
    clock,
    redact,
    sandbox,
    dryRun: dryRunOf(config),
    budgets: () => ({
      session: config.current.OPS_SESSION_BUDGET_USD,
      day: config.current.OPS_DAY_BUDGET_USD,
    }),
    maxTurns: () => config.current.OPS_MAX_TURNS,
    host: readHostFacts,
    random: randomBytes,
  }
  const model = createModelRunner({
    ...shared,
    endpoint: () => endpointOf(config),
    loadingMs: () => config.current.OPS_FIRST_OUTPUT_S * 1_000,
    prices,
  })
  const cli = createCliRunner({
    ...shared,
    command: () => config.current.OPS_AGENT_COMMAND,
    offers,
    toolsUrl() {
      const url = listeningUrl('ops', config, addresses)
      return url === undefined ? undefined : `${url}/mcp/session`
    },
  })
  return () => {
    const { OPS_RUNNER: named, OPS_MODEL_URL: url } = config.current
    if (named === 'model') return model
    if (named === 'cli') return cli
    return named === 'auto' && url !== undefined ? model : probe
  }
}

/** The configured model endpoint; undefined without one. */
function endpointOf({ current }: ConfigSource): Endpoint | undefined {
  const { OPS_MODEL_URL: url, OPS_MODEL_KEY: key } = current
  return url === undefined ? undefined : { url, key }
}
