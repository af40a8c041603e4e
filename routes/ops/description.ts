import * as Type from '../../kernel/schema.ts'
import { Event } from '../../db/ops/events.ts'
import { Memory } from '../../db/ops/agent/memories.ts'
import { ActionSummary } from '../../db/ops/agent/operations.ts'
import { Session } from '../../db/ops/agent/sessions.ts'
import type { ApiDescription, Operation } from '../../kernel/openapi.ts'
import { Config, ConfigUpdate } from '../../services/ops/config.ts'
import { MemoryCreation, MemoryUpdate } from '../../services/ops/agent/memories.ts'
import { Silence } from '../../db/ops/alerts/silences.ts'
import { SilenceRequest } from '../../services/ops/alerts/silences.ts'
import { AlertDetail, AlertProblem, AlertReceipt, ListedAlert } from './alerts/alerts.ts'
import { SessionDetail } from './agent/sessions.ts'

/** ops.md section 2, error body. */
const ErrorBody = Type.Object({
  error: Type.String({ description: 'What is wrong, for people' }),
})

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'Something in the path, the query or the body is not as it must be',
  401: 'The key is missing or wrong',
  403: 'Called by another name, by a page of another site, or by a process of a session',
  404: 'There is no such thing',
  409: 'A session is running, or what is there already does not allow it',
  413: 'The body is too large',
  415: 'The body is not said to be JSON',
  500: 'It failed; the log says why',
  503: 'The database is out of reach, and nothing was changed; try again shortly',
}

/** The API's document; pages and the chat API are not in it. */
export function describeOps(
  version: string,
  operations: readonly Operation[],
): Omit<ApiDescription, 'servers'> {
  const refusals = Object.entries(REFUSALS).map(([status, description]) => {
    return [status, { description, schema: ErrorBody }]
  })
  return {
    title: 'Gatehouse ops',
    version,
    description:
      'An agent that looks into the state of services, one session at a time, and what it found.',
    tags: {
      Health: 'For monitoring',
      Sessions: 'What the agent does and did',
      Events: 'What was found',
      Notices: 'What people were told, and where it goes',
      Memories: 'What was learned',
      Approvals: 'What waits for the yes of a person',
      Cooldowns: 'What was done to services lately',
      Config: 'The configuration that runs',
      Pause: 'The switch that stops what the agent does by itself',
      Alerts: 'Where monitoring tools deliver, and what they delivered',
      Silences: 'Times in which alerts start no session',
    },
    operations,
    schemas: {
      Session,
      SessionDetail,
      Event,
      Memory,
      MemoryCreation,
      MemoryUpdate,
      Cooldown: ActionSummary,
      Config,
      ConfigUpdate,
      Alert: ListedAlert,
      AlertDetail,
      AlertReceipt,
      AlertProblem,
      Silence,
      SilenceRequest,
      Error: ErrorBody,
    },
    refusals: Object.fromEntries(refusals),
    tokens: 'The value of OPS_CHAT_API_KEY; the alert webhook alone needs it',
  }
}
