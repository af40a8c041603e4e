import type { Ingest } from '../../../receive/deliveries/ingest.ts'
import type { Queue } from '../../queues/open.ts'
import type { HooksParts, Registry } from '../../../registry.ts'
import type { ReplayParts } from '../../../send/replays/replays.ts'
import type { SigningSecrets } from '../../../receive/schemes/signing-secrets.ts'
import type { EventStream } from '../../../log/stream.ts'
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
