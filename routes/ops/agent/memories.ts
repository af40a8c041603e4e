import * as Type from '../../../kernel/schema.ts'
import { Memory, memoryQueries as q, type StoredMemory } from '../../../db/ops/agent/memories.ts'
import {
  deletedMemory,
  memoriesView,
  memoryCard,
  memoryView,
  type FoundMemories,
} from '../../../html/ops/agent/memories.ts'
import { MAX_COUNT } from '../../../html/parts.ts'
import { found } from '../../../kernel/fault.ts'
import type { Call } from '../../../kernel/http/declaration.ts'
import { newForm, type Done, type View } from '../../../kernel/http/view.ts'
import { validate } from '../../../kernel/validate.ts'
import {
  CATEGORIES,
  changeMemory,
  confirmMemory,
  createMemory,
  MemoryCreation,
  MemoryForm,
  MemoryUpdate,
  publicMemory,
  removeMemory,
} from '../../../services/ops/agent/memories.ts'
import { outsideSessions } from '../access.ts'
import { action, form, idOf, LONG_FORM_LIMIT, page, type OpsApp } from '../kit.ts'
import { Filter, listApi, paging, pagingByConfidence, readPageAfter, type Key } from '../paging.ts'

const PATH = '/memories'
const params = { id: idOf('memory') }
const filters = { service: Filter, category: Filter }
/** Fewer than the API gives: each takes more room on a page. */
const PAGE_ROWS = 50
const PageQuery = Type.Object({ ...pagingByConfidence(PAGE_ROWS), ...filters })
type PageQuery = Type.Static<typeof PageQuery>

/**
 * What sessions learned and operators wrote (ops.md section 4; decisions.md section 5, Dashboard).
 */
export const memoryEndpoints = [
  listApi('Memories', {
    summary: 'List memories, surest first; filters combine.',
    row: Memory,
    query: Type.Object({ ...paging(200), ...filters }),
    async list({ app: { ops }, query }) {
      return (await q.listMemories(ops.db, query)).map(publicMemory)
    },
  }),

  ...action({
    body: MemoryCreation,
    act: ({ app: { ops }, actor, body, now }) => createMemory({ ...ops, actor }, body, now),
    api: {
      method: 'POST',
      path: '/api/v1/memories',
      id: 'createMemory',
      tag: 'Memories',
      summary: 'Add a memory; always a new one.',
      returns: { status: 201, description: 'The new memory', schema: Memory },
    },
    form: {
      path: PATH,
      limit: LONG_FORM_LIMIT,
      async answer({ app }) {
        const view = await showMemories(app, FIRST_PAGE)
        return { ...view, location: PATH, done: ['added', 'the memory'] }
      },
      refused: ({ app }, creation) => showMemories(app, FIRST_PAGE, { creation }),
    },
  }),

  ...action({
    params,
    body: MemoryUpdate,
    act: ({ app: { ops }, actor, params: { id }, body, now }) =>
      changeMemory({ ...ops, actor }, id, body, now),
    api: {
      method: 'PUT',
      path: '/api/v1/memories/:id',
      id: 'updateMemory',
      tag: 'Memories',
      summary: 'Change a memory.',
      // By ops.md section 4, PUT takes three fields; the others stay, whatever is sent.
      replaces: {
        current: async ({ app: { ops }, params: { id } }) =>
          publicMemory(found(await q.findMemory(ops.db, { id }), 'memory')),
        mayDiffer: ['id', 'service', 'category', 'created_at', 'updated_at', 'session_id', 'tier'],
      },
      returns: { description: 'The memory as it is now', schema: Memory },
    },
    form: {
      path: `${PATH}/:id`,
      body: MemoryForm,
      limit: LONG_FORM_LIMIT,
      answer: (call) => ({ ...savedMemory(call), done: ['saved'] }),
      refused: (call, form) => showMemory(call, form),
    },
  }),

  ...action({
    params,
    act: ({ app: { ops }, actor, params: { id } }) => removeMemory({ ...ops, actor }, id),
    api: {
      method: 'DELETE',
      path: '/api/v1/memories/:id',
      id: 'deleteMemory',
      tag: 'Memories',
      summary: 'Remove a memory.',
      returns: { description: 'It is gone' },
    },
    form: {
      path: `${PATH}/:id/delete`,
      answer: ({ params: { id } }) => ({
        location: PATH,
        fragment: () => deletedMemory(id),
        done: ['deleted', 'the memory'],
      }),
    },
  }),

  form({
    access: outsideSessions,
    path: `${PATH}/:id/confirm`,
    params,
    body: Type.Object({}),
    async answer(call) {
      const { app, actor, params, now } = call
      await confirmMemory({ ...app.ops, actor }, params.id, now)
      return { ...savedMemory(call), done: ['confirmed', 'the memory'] }
    },
  }),

  page({
    path: PATH,
    query: PageQuery,
    answer: ({ app, query }) => showMemories(app, query),
  }),

  page({
    path: `${PATH}/:id`,
    params,
    answer: (call) => showMemory(call),
  }),
]

type MemoryCall = Pick<Call<OpsApp, undefined, { id: number }>, 'app' | 'params'>

async function showMemory(
  { app: { ops }, params: { id } }: MemoryCall,
  form = newForm(MemoryForm),
): Promise<View> {
  return memoryView({ memory: found(await q.findMemory(ops.db, { id }), 'memory'), form })
}

/** To the list without script; else the card as it is now. */
function savedMemory({ app: { ops }, params: { id } }: MemoryCall): Done {
  return {
    location: PATH,
    fragment: async () =>
      memoryCard({ memory: found(await q.findMemory(ops.db, { id }), 'memory') }),
  }
}

const FIRST_PAGE: PageQuery = validate(PageQuery, {})

async function showMemories(
  { ops }: OpsApp,
  query: PageQuery,
  state: Partial<FoundMemories> = {},
): Promise<View> {
  const [listed, { count }] = await Promise.all([
    readPageAfter(PATH, query, keyOf, ({ after, ...asked }) =>
      q.pageMemories(ops.db, { ...asked, confidence: after.rank, id: after.id }),
    ),
    q.countMemories(ops.db, { ...query, limit: MAX_COUNT + 1 }),
  ])
  const first = { creation: newForm(MemoryCreation), categories: CATEGORIES, count }
  return memoriesView({ ...query, ...listed, ...first, ...state })
}

function keyOf({ confidence, id }: StoredMemory): Key {
  return { rank: confidence, id }
}
