import type { Database } from '../../../../db/client.ts'
import { eventQueries as q, type EventSummary } from '../../../../db/hooks/log/events.ts'
import { Fault } from '../../../../kernel/fault.ts'
import type { Clock } from '../../../../kernel/time.ts'
import { eventDetail } from './detail.ts'
import type { ExportQuery } from './filter.ts'
import { findEvents } from './events.ts'

/** Events that one look at the log finds at most. */
const PAGE = 200
/** Bytes of payloads that are read at once; a larger payload is read alone. */
const CHUNK_BYTES = 1024 * 1024

/**
 * The events that the filters choose, newest first, as lines of JSON: each as the API gives the
 * event. Holds the payloads of one chunk, and reads the next one when it is asked for.
 */
export async function* exportLines(
  db: Database,
  clock: Clock,
  query: ExportQuery,
  client: { gone(): AbortSignal },
): AsyncGenerator<string, undefined> {
  for (let cursor = ''; !client.gone().aborted;) {
    const page = await findPage(db, clock, { ...query, limit: PAGE, cursor }, client)
    for (const ids of chunksOf(page.events)) {
      const events = await q.listStored(db, { ids })
      yield events.map((event) => `${JSON.stringify(eventDetail(event))}\n`).join('')
    }
    if (page.next_cursor === null) return
    cursor = page.next_cursor
  }
}

/** Once an export has begun, it waits for its slot as long as that takes. */
async function findPage(...given: Parameters<typeof findEvents>) {
  const [, , { cursor }, client] = given
  for (;;) {
    try {
      return await findEvents(...given)
    } catch (error) {
      const isBusy = error instanceof Fault && error.status === 503
      if (!isBusy || cursor === '' || client.gone().aborted) throw error
    }
  }
}

/** Ids in their order, a list for each chunk. */
function* chunksOf(events: readonly EventSummary[]): Generator<readonly number[]> {
  let chunk: number[] = []
  let bytes = 0
  for (const { id, payload_size } of events) {
    if (chunk.length > 0 && bytes + payload_size > CHUNK_BYTES) {
      yield chunk
      chunk = []
      bytes = 0
    }
    chunk.push(id)
    bytes += payload_size
  }
  if (chunk.length > 0) yield chunk
}
