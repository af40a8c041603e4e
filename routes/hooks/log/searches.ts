import * as Type from '../../../kernel/schema.ts'
import { Search } from '../../../db/hooks/log/searches.ts'
import {
  searchesFragment,
  searchesPage,
  searchMenu,
  type SearchesView,
} from '../../../html/hooks/log/searches.ts'
import { notFound } from '../../../kernel/fault.ts'
import type { View } from '../../../kernel/http/view.ts'
import { parsed } from '../../../kernel/validate.ts'
import {
  addSearch,
  findSearch,
  listSearches,
  removeSearch,
  renameSearch,
  SearchForm,
  SearchName,
} from '../../../services/hooks/log/searches.ts'
import { operator, reader } from '../access.ts'
import { action, api, page, type HooksRoutes } from '../kit.ts'

const PATH = '/searches'
const path = '/api/v1/searches/:id'
const usual = { access: operator, tag: 'Searches', refuses: [400, 401, 403, 404] } as const
const params = {
  id: parsed(Type.Integer({ minimum: 1 }), '', (given) => {
    if (/^\d{1,15}$/.test(String(given))) return Number(given)
    throw notFound('Search not found.')
  }),
}

export const SearchList = Type.Object({ searches: Type.Array(Search) })

/** `/searches`, where saved searches are renamed and removed, and the same for programs. */
export const searchEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/searches',
    access: reader,
    id: 'listSearches',
    tag: 'Searches',
    summary: 'List the saved searches of the log, by name.',
    returns: { description: 'All of them', schema: SearchList },
    answer: async ({ app }) => ({ searches: await listSearches(app.hooks.db) }),
  }),

  page({ path: PATH, answer: ({ app }) => searchesView(app) }),

  ...action({
    body: SearchForm,
    act: ({ app: { hooks }, actor, body, now }) => addSearch({ ...hooks, actor }, body, now),
    api: {
      ...usual,
      method: 'POST',
      path: '/api/v1/searches',
      id: 'addSearch',
      summary: 'Save filters of the log under a name.',
      returns: { status: 201, description: 'The saved search', schema: Search },
      refuses: [400, 401, 403, 409, 422],
    },
    form: {
      path: PATH,
      async answer({ app }, { id, name, query }) {
        const menu = { searches: await listSearches(app.hooks.db), query }
        const fragment = () => searchMenu(menu, { saved: id })
        return { location: `/log?${query}`, fragment, done: ['saved', name] }
      },
      async refused({ app }, form) {
        const searches = await listSearches(app.hooks.db)
        const menu = { searches, query: form.typed['query'] ?? '' }
        return {
          page: () => searchesPage({ searches, refused: form }),
          fragment: () => searchMenu(menu, { form }),
        }
      },
    },
  }),

  ...action({
    params,
    body: SearchName,
    act: ({ app: { hooks }, actor, params: { id }, body }) =>
      renameSearch({ ...hooks, actor }, id, body.name),
    api: {
      ...usual,
      method: 'PUT',
      path,
      id: 'renameSearch',
      summary: 'Rename a saved search.',
      returns: { description: 'The search', schema: Search },
      replaces: {
        current: ({ app, params: { id } }) => findSearch(app.hooks.db, id),
        mayDiffer: [],
      },
      refuses: [...usual.refuses, 409, 422],
    },
    form: {
      path: `${PATH}/:id/rename`,
      answer: async ({ app }, { name }) => {
        return { ...(await searchesView(app)), done: ['renamed', name] }
      },
      refused: ({ app, params: { id } }, form) => searchesView(app, { renamed: { id, form } }),
    },
  }),

  ...action({
    params,
    act: ({ app: { hooks }, actor, params: { id } }) => removeSearch({ ...hooks, actor }, id),
    api: {
      ...usual,
      method: 'DELETE',
      path,
      id: 'removeSearch',
      summary: 'Remove a saved search.',
      returns: { description: 'It was removed' },
    },
    form: {
      path: `${PATH}/:id/remove`,
      answer: async ({ app }) => {
        return { ...(await searchesView(app)), done: ['removed', 'the search'] }
      },
    },
  }),
]

async function searchesView(
  { hooks: { db } }: HooksRoutes,
  changes: Partial<SearchesView> = {},
): Promise<View> {
  const view = { searches: await listSearches(db), ...changes }
  return {
    page: () => searchesPage(view),
    fragment: () => searchesFragment(view),
    location: PATH,
  }
}
