import { randomBytes } from 'node:crypto'
import { get, post } from '../../../kernel/net/outbound.ts'
import { hooksFallback } from '../../../routes/hooks/receive/deliveries/deliveries.ts'
import type { HooksRoutes } from '../../../routes/hooks/kit.ts'
import { hooksFault } from '../../../routes/hooks/faults.ts'
import { hooksRoutes } from '../../../routes/hooks/routes.ts'
import { createToolServers } from '../../../services/hooks/agents/endpoints/tools/server.ts'
import { openHooks } from '../../../services/hooks/open.ts'
import type { QueueSource } from '../../../services/hooks/agents/queues/open.ts'
import type { OpenService, ServiceContext } from '../listeners.ts'
import {
  describeConfiguration,
  recoverySchedule,
  runningServices,
} from '../../frame/configuration.ts'

/** The hooks service, made from the configuration. */
export const openService: OpenService = async (context) => {
  const { config, version, addresses } = context
  const baseUrl = () => config.current.HOOKS_BASE_URL ?? addresses().get('hooks') ?? ''
  const hooks = await openHooks({
    ...context,
    random: randomBytes,
    ...(context.outbound ?? { get, post }),
    baseUrl,
    recovery: () => recoverySchedule(config),
    replayTargets: () => config.current.HOOKS_REPLAY_TARGETS,
    maxBody: () => config.current.HOOKS_MAX_BODY,
    queueSource: queueSource(context),
  })
  const app: HooksRoutes = {
    hooks,
    toolServerOf: createToolServers(hooks, version),
    version,
    services: () => runningServices(config, addresses),
    baseUrl,
    maxBody: () => config.current.HOOKS_MAX_BODY,
    freshnessSeconds: () => config.current.HOOKS_FRESHNESS_S,
    overlapSeconds: () => config.current.HOOKS_ROTATION_OVERLAP_S,
    configuration: () => describeConfiguration(config),
  }
  return {
    name: 'hooks',
    routes: hooksRoutes(app),
    fallback: hooksFallback(app),
    faultReply: (...fault) => hooksFault(app, ...fault),
    begin: () => hooks.begin(),
    refresh: () => hooks.registry.refresh(),
    endStreams: () => hooks.endStreams(),
    close: () => hooks.close(),
  }
}

/** The queue that hooks reads. It needs both variables; one alone is logged and ignored. */
function queueSource({ config, log }: ServiceContext): QueueSource | undefined {
  const { HOOKS_QUEUE_URL: url, HOOKS_QUEUE_CHANNELS: channels } = config.current
  if (url !== undefined && channels !== undefined) return { url, channels }
  if (url !== undefined) log.warn('no queue is read: HOOKS_QUEUE_CHANNELS is not set')
  if (channels !== undefined) log.warn('no queue is read: HOOKS_QUEUE_URL is not set')
  return undefined
}
