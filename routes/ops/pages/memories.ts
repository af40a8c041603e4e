import {
  addMemory,
  findMemory,
  listMemories,
  removeMemory,
  updateMemory,
} from '../../../db/ops/memories.ts'
import type { NewMemoryView } from '../../../html/ops/memory-forms.ts'
import {
  deletedMemory,
  memoriesFragment,
  memoriesPage,
  memoryCard,
  type EditedMemory,
  type MemoriesView,
} from '../../../html/ops/memories.ts'
import type { Context } from '../../../kernel/http/context.ts'
import { htmlReply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import {
  CATEGORIES,
  FIRST_CONFIDENCE,
  readMemory,
  readMemoryUpdate,
} from '../../../services/ops/memories.ts'
import { LONG_FORM_LIMIT, linesIn, readForm, readOptionalForm } from '../../form.ts'
import { sentence } from '../../page-answers.ts'
import { filterOf, readList, type ListRequest } from '../api/operation.ts'
import { badRequest, notFound } from '../faults.ts'
import type { OpsRoutes } from '../options.ts'
import { doneReply, pageOf, pageRoute, refusedReply, rowIdOf } from './page.ts'

const USUAL = 200
const FIRST: ListRequest = { limit: USUAL, offset: 0, query: new URLSearchParams() }
const PATH = '/memories'

/** `/memories` with its forms (decisions.md section 5, Dashboard). */
export function memoryRoutes({ ops }: OpsRoutes): readonly Route[] {
  const { db } = ops

  async function view(
    asked: ListRequest,
    { added = emptyForm(), edited = null }: Partial<Pick<MemoriesView, 'added' | 'edited'>> = {},
  ): Promise<MemoriesView> {
    const [service, category] = [filterOf(asked, 'service'), filterOf(asked, 'category')]
    const filter = { service, category }
    const found = await listMemories(db, filter, asked.offset, asked.limit + 1)
    const { rows: memories, older } = pageOf(found, asked, PATH)
    return { memories, older, service, category, added, edited }
  }

  return [
    pageRoute({
      ...{ method: 'GET', path: PATH },
      async answer(context) {
        const asked = readList(context, USUAL)
        if ('status' in asked) return asked
        return htmlReply(memoriesPage(await view(asked)))
      },
    }),
    pageRoute({
      ...{ method: 'POST', path: PATH },
      async answer(context) {
        const form = await readForm(context, LONG_FORM_LIMIT)
        if ('status' in form) return form
        const typed = typedIn(form)
        const memory = readMemory({ ...typed, confidence: numberIn(typed.confidence) })
        if (typeof memory === 'string') {
          const added = { ...emptyForm(), typed, refused: sentence(memory) }
          return refusedReply(
            context,
            badRequest(memory),
            async () => memoriesPage(await view(FIRST, { added })),
            async () => memoriesFragment(await view(FIRST, { added })),
          )
        }
        await addMemory(db, memory, context.receivedAt)
        return doneReply(context, PATH, async () =>
          memoriesFragment(await view(FIRST, { added: { ...emptyForm(), saved: true } })),
        )
      },
    }),
    pageRoute({
      ...{ method: 'POST', path: `${PATH}/:id` },
      async answer(context) {
        const form = await readForm(context, LONG_FORM_LIMIT)
        if ('status' in form) return form
        return change(context, form)
      },
    }),
    pageRoute({
      ...{ method: 'POST', path: `${PATH}/:id/delete` },
      async answer(context) {
        const form = await readOptionalForm(context)
        if ('status' in form) return form
        const id = rowIdOf(context)
        if (!(await removeMemory(db, id))) return notFound('memory')
        return doneReply(context, PATH, () => deletedMemory(id))
      },
    }),
  ]

  async function change(context: Context, form: URLSearchParams) {
    const id = rowIdOf(context)
    const typed = typedIn(form)
    const changes = readMemoryUpdate({ ...typed, confidence: numberIn(typed.confidence) })
    if (typeof changes === 'string') {
      const memory = await findMemory(db, id)
      if (memory === undefined) return notFound('memory')
      const edited: EditedMemory = { id, typed, refused: sentence(changes), saved: false }
      return refusedReply(
        context,
        badRequest(changes),
        async () => {
          const shown = await view(FIRST, { edited })
          const { memories } = shown
          const listed = memories.some((other) => other.id === id)
          return memoriesPage({ ...shown, memories: listed ? memories : [memory, ...memories] })
        },
        () => memoryCard(memory, edited),
      )
    }
    const memory = await updateMemory(db, id, changes, context.receivedAt)
    if (memory === undefined) return notFound('memory')
    return doneReply(context, PATH, () =>
      memoryCard(memory, { id, typed: null, refused: null, saved: true }),
    )
  }
}

/** A box that is not ticked is not sent. */
function typedIn(form: URLSearchParams): NewMemoryView['typed'] {
  const text = (name: string): string => form.get(name) ?? ''
  return {
    service: text('service'),
    category: text('category'),
    observation: linesIn(form, 'observation'),
    confidence: text('confidence'),
    active: form.has('active') && form.get('active') !== 'false',
  }
}

/** What the field says, or nothing that could pass for a number. */
function numberIn(text: string): number | null {
  return text.trim() === '' || !Number.isFinite(Number(text)) ? null : Number(text)
}

function emptyForm(): NewMemoryView {
  const typed = { service: '', category: '', observation: '', active: true }
  return {
    typed: { ...typed, confidence: String(FIRST_CONFIDENCE) },
    categories: CATEGORIES,
    refused: null,
    saved: false,
  }
}
