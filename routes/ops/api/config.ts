import type { Operation } from '../../../kernel/openapi.ts'
import { jsonReply } from '../../../kernel/http/reply.ts'
import { Config, ConfigUpdate, readConfigUpdate } from '../../../services/ops/config.ts'
import { badRequest } from '../faults.ts'
import type { OpsRoutes } from '../options.ts'
import { bodyOf, opsOperation } from './operation.ts'

/** `/config` (ops.md section 4). */
export function configOperations({ ops }: OpsRoutes): readonly Operation[] {
  const { config } = ops
  const tag = 'Config'
  return [
    opsOperation({
      ...{ method: 'GET', path: '/api/v1/config', id: 'getConfig', tag },
      summary: 'Get the configuration that runs.',
      replies: { 200: { description: 'The configuration', schema: Config } },
      refusals: [],
      answer: async () => jsonReply(config.current),
    }),
    opsOperation({
      ...{ method: 'PUT', path: '/api/v1/config', id: 'updateConfig', tag },
      summary: 'Change the given fields; read-only and unknown ones are ignored.',
      body: ConfigUpdate,
      replies: { 200: { description: 'The configuration as it is now', schema: Config } },
      refusals: [400, 413, 415],
      async answer(context) {
        const body = await bodyOf(context)
        if ('status' in body) return body
        const changes = readConfigUpdate(body.value)
        if (typeof changes === 'string') return badRequest(changes)
        return jsonReply(await config.update(changes))
      },
    }),
  ]
}
