import Type from 'typebox'
import { type Tool, defineTool, toolValue } from '../../../kernel/mcp/server.ts'
import { EventId } from './events.ts'
import type { Replay } from '../replay.ts'
import { failure } from './options.ts'

/** `replay_webhook_event`: only on an endpoint that was made for it. */
export function replayTool(replay: Replay): Tool {
  return defineTool({
    name: 'replay_webhook_event',
    title: 'Replay a webhook event',
    description:
      'Sends the stored bytes of an event to a target again, or to the default target of the ' +
      'settings. Private and local addresses are refused unless an operator allowed them.',
    input: Type.Object(
      {
        id: EventId,
        target_url: Type.Optional(
          Type.String({ maxLength: 2_048, description: 'http:// or https:// URL to post to' }),
        ),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({
      id: Type.Integer(),
      target_url: Type.String(),
      delivered: Type.Boolean(),
      response_status: Type.Integer(),
      response_ms: Type.Integer(),
    }),
    annotations: {
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: true,
    },
    async call({ id, target_url }) {
      const answer = await replay(id, target_url)
      return 'code' in answer ? failure(answer.code, answer.message) : toolValue({ ...answer })
    },
  })
}
