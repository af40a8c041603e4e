import Type from 'typebox'
import type { Operation } from '../../../kernel/openapi.ts'
import { jsonReply } from '../../../kernel/http/reply.ts'
import type { OpsRoutes } from '../options.ts'
import { configOperations } from './config.ts'
import { recordOperations } from './records.ts'
import { sessionOperations } from './sessions.ts'

export const API = '/api/v1/'

/** Every operation of the API (ops.md section 4) but the webhook. */
export function apiOperations(options: OpsRoutes): readonly Operation[] {
  return [
    {
      ...{ method: 'GET', path: '/api/v1/health', id: 'getHealth', tag: 'Health' },
      summary: 'Say that the service runs; asks nothing of the database.',
      access: 'open',
      needsToken: false,
      replies: {
        200: { description: 'It runs', schema: Type.Object({ status: Type.Literal('ok') }) },
      },
      refusals: [],
      handle: () => jsonReply({ status: 'ok' }),
    },
    ...sessionOperations(options),
    ...recordOperations(options),
    ...configOperations(options),
  ]
}
