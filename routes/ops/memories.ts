import Type from 'typebox'
import { Memory, memoryQueries as q } from '../../db/ops/memories.ts'
import {
  deletedMemory,
  memoriesView,
  memoryCard,
  memoryView,
  type FoundMemories,
} from '../../html/ops/memories.ts'
import { MAX_COUNT } from '../../html/parts.ts'
import { found } from '../../kernel/fault.ts'
import { newForm, type View } from '../../kernel/http/view.ts'
import {
  CATEGORIES,
  changeMemory,
  createMemory,
  MemoryCreation,
  MemoryUpdate,
  removeMemory,
} from '../../services/ops/memories.ts'
import {
  api,
  Filter,
  form,
  idOf,
  listApi,
  LONG_FORM_LIMIT,
  page,
  paging,
  readPage,
  type OpsApp,
} from './kit.ts'

const PATH = '/memories'
const params = { id: idOf('memory') }
const filters = { service: Filter, category: Filter }
/** Fewer than the API gives: each takes more room on a page. */
const PAGE_ROWS = 50
const PageQuery = Type.Object({ ...paging(PAGE_ROWS), ...filters })
type PageQuery = Type.Static<typeof PageQuery>

/**
 * What sessions learned and operators wrote (ops.md section 4; decisions.md section 5, Dashboard).
 */
export const memoryEndpoints = [
  listApi('Memories', {
    summary: 'List memories, surest first; filters combine.',
    row: Memory,
    query: Type.Object({ ...paging(200), ...filters }),
    list: ({ app: { ops }, query }) => q.listMemories(ops.db, query),
  }),

  api({
    method: 'POST',
    path: '/api/v1/memories',
    id: 'createMemory',
    tag: 'Memories',
    summary: 'Add a memory; always a new one.',
    body: MemoryCreation,
    returns: { status: 201, description: 'The new memory', schema: Memory },
    answer: ({ app: { ops }, actor, body, now }) => createMemory({ ...ops, actor }, body, now),
  }),

  api({
    method: 'PUT',
    path: '/api/v1/memories/:id',
    id: 'updateMemory',
    tag: 'Memories',
    summary: 'Change a memory.',
    params,
    body: MemoryUpdate,
    returns: { description: 'The memory as it is now', schema: Memory },
    answer: ({ app: { ops }, actor, params: { id }, body, now }) =>
      changeMemory({ ...ops, actor }, id, body, now),
  }),

  api({
    method: 'DELETE',
    path: '/api/v1/memories/:id',
    id: 'deleteMemory',
    tag: 'Memories',
    summary: 'Remove a memory.',
    params,
    returns: { description: 'It is gone' },
    answer: ({ app: { ops }, actor, params: { id } }) => removeMemory({ ...ops, actor }, id),
  }),

  page({
    path: PATH,
    query: PageQuery,
    answer: ({ app, query }) => showMemories(app, query),
  }),

  form({
    path: PATH,
    body: MemoryCreation,
    limit: LONG_FORM_LIMIT,
    async answer({ app, actor, body, now }) {
      await createMemory({ ...app.ops, actor }, body, now)
      return { ...(await showMemories(app, FIRST_PAGE, { isSaved: true })), location: PATH }
    },
    refused: ({ app }, creation) => showMemories(app, FIRST_PAGE, { creation }),
  }),

  page({
    path: `${PATH}/:id`,
    params,
    async answer({ app: { ops }, params: { id } }) {
      const memory = found(await q.findMemory(ops.db, { id }), 'memory')
      return memoryView({ memory, form: newForm(MemoryUpdate) })
    },
  }),

  form({
    path: `${PATH}/:id`,
    params,
    body: MemoryUpdate,
    limit: LONG_FORM_LIMIT,
    async answer({ app: { ops }, actor, params: { id }, body, now }) {
      const memory = await changeMemory({ ...ops, actor }, id, body, now)
      return { location: PATH, fragment: () => memoryCard({ memory, isSaved: true }) }
    },
    async refused({ app, params: { id } }, update) {
      const memory = found(await q.findMemory(app.ops.db, { id }), 'memory')
      return memoryView({ memory, form: update })
    },
  }),

  form({
    path: `${PATH}/:id/delete`,
    params,
    async answer({ app: { ops }, actor, params: { id } }) {
      await removeMemory({ ...ops, actor }, id)
      return { location: PATH, fragment: () => deletedMemory(id) }
    },
  }),
]

const FIRST_PAGE: PageQuery = { limit: PAGE_ROWS, offset: 0, service: null, category: null }

async function showMemories(
  { ops }: OpsApp,
  query: PageQuery,
  state: Partial<FoundMemories> = {},
): Promise<View> {
  const [listed, { count }] = await Promise.all([
    readPage(PATH, query, (asked) => q.listMemories(ops.db, asked)),
    q.countMemories(ops.db, { ...query, limit: MAX_COUNT + 1 }),
  ])
  const first = { creation: newForm(MemoryCreation), categories: CATEGORIES, count }
  return memoriesView({ ...query, ...listed, ...first, ...state })
}
