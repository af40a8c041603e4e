import Type from 'typebox'
import type { ApiDescription, Operation, ReplyDescription } from '../../kernel/openapi.ts'
import { Health } from '../../services/hooks/status.ts'
import { IngestAck } from './deliveries.ts'

/** hooks.md section 2, Problem. */
const Problem = Type.Object({
  type: Type.String(),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String(),
  instance: Type.String(),
})

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'The delivery can not be read',
  401: 'The signature is missing, malformed, stale or wrong',
  403: 'The provider is disabled, or its token or signature is missing or wrong',
  404: 'There is no such provider, or it is not configured',
  413: 'The body is too large',
  503: 'The database is out of reach or more comes than can be stored: to be sent again',
}

/** What the document says of the endpoints for programs; pages and tools (MCP) are not among them. */
export function describeHooks(
  version: string,
  operations: readonly Operation[],
): Omit<ApiDescription, 'servers'> {
  const refusal = ([status, description]: [string, string]): [string, ReplyDescription] => [
    status,
    { description, schema: Problem, type: 'application/problem+json' },
  ]
  return {
    title: 'Gatehouse hooks',
    version,
    description: 'Webhook receivers and the live stream of their events.',
    tags: {
      Receivers: 'Where senders deliver',
      Events: 'What was delivered, live',
      Health: 'For monitoring',
    },
    operations,
    schemas: { IngestAck, Health, Problem },
    refusals: Object.fromEntries(Object.entries(REFUSALS).map(refusal)),
  }
}
