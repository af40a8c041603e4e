import type { Ingest } from '../../deliveries/ingest.ts'
import type { Queue } from '../../queues/open.ts'
import type { HooksParts, Registry } from '../../registry.ts'
import type { ReplayParts } from '../../replays/replays.ts'
import type { SigningSecrets } from '../../schemes/secrets.ts'
import type { EventStream } from '../../stream.ts'
import type { openEndpoints } from '../endpoints.ts'

/** What the tools of an endpoint work with. */
export interface ToolParts extends HooksParts, Omit<ReplayParts, keyof HooksParts> {
  registry: Registry
  endpoints: ReturnType<typeof openEndpoints>
  secrets: SigningSecrets
  ingest: Ingest
  queue: Queue
  stream: EventStream
}
