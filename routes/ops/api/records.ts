import Type from 'typebox'
import { listCooldowns } from '../../../db/ops/actions.ts'
import { listEvents } from '../../../db/ops/events.ts'
import { Cooldown, Event, Memory } from '../../../db/ops/rows.ts'
import { addMemory, listMemories, removeMemory, updateMemory } from '../../../db/ops/memories.ts'
import type { Operation } from '../../../kernel/openapi.ts'
import { jsonReply } from '../../../kernel/http/reply.ts'
import {
  MemoryCreation,
  MemoryUpdate,
  readMemory,
  readMemoryUpdate,
} from '../../../services/ops/memories.ts'
import { badRequest, notFound } from '../faults.ts'
import type { OpsRoutes } from '../options.ts'
import { bodyOf, filterOf, idOf, IdParam, listQuery, opsOperation, readList } from './operation.ts'

const USUAL_EVENTS = 100
const USUAL_MEMORIES = 200
const DAY_MS = 86_400_000

const text = Type.Optional(Type.String())

/** `/events`, `/memories` and `/cooldowns` (ops.md section 4). */
export function recordOperations({ ops }: OpsRoutes): readonly Operation[] {
  const { db } = ops
  const tag = 'Memories'
  const params = { id: IdParam }
  const badId = badRequest('the memory id must be an integer')
  return [
    opsOperation({
      ...{ method: 'GET', path: '/api/v1/events', id: 'listEvents', tag: 'Events' },
      summary: 'List events, newest first; filters combine.',
      query: Type.Object({ ...listQuery(USUAL_EVENTS), level: text, service: text }),
      replies: {
        200: { description: 'Events', schema: Type.Object({ events: Type.Array(Event) }) },
      },
      refusals: [400],
      async answer(context) {
        const asked = readList(context, USUAL_EVENTS)
        if ('status' in asked) return asked
        const [level, service] = [filterOf(asked, 'level'), filterOf(asked, 'service')]
        const filter = { level, service, session: null }
        return jsonReply({ events: await listEvents(db, filter, asked.offset, asked.limit) })
      },
    }),
    opsOperation({
      ...{ method: 'GET', path: '/api/v1/memories', id: 'listMemories', tag },
      summary: 'List memories, surest first; filters combine.',
      query: Type.Object({ ...listQuery(USUAL_MEMORIES), service: text, category: text }),
      replies: {
        200: { description: 'Memories', schema: Type.Object({ memories: Type.Array(Memory) }) },
      },
      refusals: [400],
      async answer(context) {
        const asked = readList(context, USUAL_MEMORIES)
        if ('status' in asked) return asked
        const [service, category] = [filterOf(asked, 'service'), filterOf(asked, 'category')]
        const filter = { service, category }
        return jsonReply({ memories: await listMemories(db, filter, asked.offset, asked.limit) })
      },
    }),
    opsOperation({
      ...{ method: 'POST', path: '/api/v1/memories', id: 'createMemory', tag },
      summary: 'Add a memory; always a new one.',
      body: MemoryCreation,
      replies: { 201: { description: 'The new memory', schema: Memory } },
      refusals: [400, 413, 415],
      async answer(context) {
        const body = await bodyOf(context)
        if ('status' in body) return body
        const memory = readMemory(body.value)
        if (typeof memory === 'string') return badRequest(memory)
        return jsonReply(await addMemory(db, memory, context.receivedAt), 201)
      },
    }),
    opsOperation({
      ...{ method: 'PUT', path: '/api/v1/memories/:id', id: 'updateMemory', tag, params },
      summary: 'Change a memory.',
      body: MemoryUpdate,
      replies: { 200: { description: 'The memory as it is now', schema: Memory } },
      refusals: [400, 404, 413, 415],
      async answer(context) {
        const id = idOf(context)
        if (id === undefined) return badId
        const body = await bodyOf(context)
        if ('status' in body) return body
        const change = readMemoryUpdate(body.value)
        if (typeof change === 'string') return badRequest(change)
        const memory = await updateMemory(db, id, change, context.receivedAt)
        return memory === undefined ? notFound('memory') : jsonReply(memory)
      },
    }),
    opsOperation({
      ...{ method: 'DELETE', path: '/api/v1/memories/:id', id: 'deleteMemory', tag, params },
      summary: 'Remove a memory.',
      replies: { 204: { description: 'It is gone' } },
      refusals: [400, 404],
      async answer(context) {
        const id = idOf(context)
        if (id === undefined) return badId
        if (!(await removeMemory(db, id))) return notFound('memory')
        return { status: 204, headers: { 'cache-control': 'no-store' }, body: null }
      },
    }),
    opsOperation({
      ...{ method: 'GET', path: '/api/v1/cooldowns', id: 'listCooldowns', tag: 'Cooldowns' },
      summary: 'List what was done in the last 24 hours, newest first.',
      replies: {
        200: {
          description: 'Summaries of actions',
          schema: Type.Object({ cooldowns: Type.Array(Cooldown) }),
        },
      },
      refusals: [],
      async answer({ receivedAt }) {
        const since = new Date(receivedAt.getTime() - DAY_MS)
        return jsonReply({ cooldowns: await listCooldowns(db, since) })
      },
    }),
  ]
}
