import Type from 'typebox'
import { queryOf, type Context } from '../../../kernel/http/context.ts'
import type { Reply, Sink } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import type { Operation } from '../../../kernel/openapi.ts'
import { validateQuery } from '../../../kernel/validate.ts'
import { ExportQuery } from '../../../services/hooks/events/filter.ts'
import { exportLines } from '../../../services/hooks/events/export.ts'
import { reader, type Caller } from '../access.ts'
import type { HooksRoutes } from '../kit.ts'
import { refuseForeignSearch } from './foreign-search.ts'
import { endWhenRevoked } from '../stream.ts'

const NDJSON = 'application/x-ndjson'

/** `GET /api/v1/events/export`. */
export function exportOperation(app: HooksRoutes): Operation {
  return {
    method: 'GET',
    path: '/api/v1/events/export',
    access: reader.guard,
    id: 'exportEvents',
    tag: 'Events',
    summary: 'Get all events that the filters choose, with headers and payloads, newest first.',
    description:
      'A line of JSON for each event, as GET /api/v1/events/{id} gives it. The answer ends ' +
      'early, without the last chunk of HTTP, where the rest could not be read.',
    needsToken: reader.needsToken,
    query: ExportQuery,
    replies: { 200: { description: 'The lines', schema: Type.String(), type: NDJSON } },
    refusals: [400, 401, 403, 503],
    async handle(context) {
      return exportReply(app, context, await reader.identify(app, context))
    },
  }
}

/** `GET /log/export`: a link of the log's page. */
export function exportRoute(app: HooksRoutes): Route {
  return {
    method: 'GET',
    path: '/log/export',
    access: 'private',
    handle: (context) => exportReply(app, context),
  }
}

async function exportReply(
  { hooks }: HooksRoutes,
  context: Context,
  caller?: Caller,
): Promise<Reply> {
  const query = validateQuery(ExportQuery, queryOf(context))
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
      if (caller !== undefined) endWhenRevoked(hooks.endpoints.signalOf(caller), sink)
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
