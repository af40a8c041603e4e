import * as Type from '../../../../kernel/schema.ts'
import type { Context } from '../../../../kernel/http/context.ts'
import { visitor } from '../../../../kernel/http/endpoint.ts'
import type { Reply, Sink } from '../../../../kernel/http/reply.ts'
import { messageOf, type Log } from '../../../../kernel/log.ts'
import { exportLines } from '../../../../services/hooks/log/events/export.ts'
import { ExportQuery } from '../../../../services/hooks/log/events/filter.ts'
import { reader, type Caller } from '../../access.ts'
import { raw, type HooksRoutes } from '../../kit.ts'
import { endWhenRevoked } from '../stream.ts'
import { refuseForeignSearch } from './foreign-search.ts'

const NDJSON = 'application/x-ndjson'

/** The events that the filters choose as a download: a link of the log, and for programs. */
export const exportEndpoints = [
  raw({
    path: '/log/export',
    access: visitor,
    query: ExportQuery,
    answer: ({ app, query, context }) => exportReply(app, query, context, undefined),
  }),

  raw({
    path: '/api/v1/events/export',
    access: reader,
    query: ExportQuery,
    notes: {
      id: 'exportEvents',
      tag: 'Events',
      summary: 'Get all events that the filters choose, with headers and payloads, newest first.',
      description:
        'A line of JSON for each event, as GET /api/v1/events/{id} gives it. The answer ends ' +
        'early, without the last chunk of HTTP, where the rest could not be read.',
      replies: { 200: { description: 'The lines', schema: Type.String(), type: NDJSON } },
    },
    answer: ({ app, query, context, caller }) => exportReply(app, query, context, caller),
  }),
]

async function exportReply(
  { hooks }: HooksRoutes,
  query: ExportQuery,
  context: Context,
  caller: Caller,
): Promise<Reply> {
  refuseForeignSearch(query, context, caller)
  const lines = exportLines(hooks.db, hooks.clock, query, context)
  // What refuses the search does so before the head is sent.
  const first = await lines.next()
  return {
    status: 200,
    headers: {
      'content-type': NDJSON,
      'content-disposition': 'attachment; filename="events.ndjson"',
      'cache-control': 'no-store',
    },
    body(sink) {
      endWhenRevoked(hooks, caller, sink)
      void writeLines(hooks.log, sink, first.value ?? '', lines)
    },
  }
}

async function writeLines(
  log: Log,
  sink: Sink,
  first: string,
  rest: AsyncGenerator<string>,
): Promise<void> {
  try {
    sink.write(first)
    await sink.drained()
    for await (const lines of rest) {
      if (sink.closed) return
      sink.write(lines)
      await sink.drained()
    }
    sink.end()
  } catch (error) {
    log.warn('export not sent to its end', { error: messageOf(error) })
    // Not ended: the client would take what it has for all.
    sink.destroy()
  }
}
