import type { Memory } from '../../db/ops/memories.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import {
  checkbox,
  field,
  filterForm,
  filterText,
  postForm,
  refusal,
  submit,
  type Form,
} from '../form.ts'
import { cards, disclosed, nextLink, saved, timeTag } from '../parts.ts'
import { opsPage } from './layout.ts'

/** What `/memories` shows. */
export interface MemoriesView {
  readonly memories: readonly Memory[]
  /** Filters; null for all. */
  readonly service: string | null
  readonly category: string | null
  readonly older: string | undefined
  /** Categories that are suggested. */
  readonly categories: readonly string[]
  readonly creation: FormState
  readonly update: FormState
  /** A memory was just added. */
  readonly isSaved?: boolean
  /** A memory whose change was refused: it stands first if this page does not list it. */
  readonly edited?: MemoryCard
}

/** A memory with the form that changes it. */
export interface MemoryCard {
  readonly memory: Memory
  readonly form: FormState
  readonly isSaved?: boolean
}

export function memoriesPage(view: MemoriesView): Html {
  return opsPage({
    title: 'Memories',
    section: 'memories',
    body: html`<h1>Memories</h1>
      <p class="muted">
        What sessions learned and what you noted. Every session is told the active ones.
      </p>
      ${memoryFilter(view)} ${memoriesFragment(view)}`,
  })
}

export function memoriesFragment(view: MemoriesView): Html {
  const { memories, edited, update, older } = view
  const isListed = memories.some(({ id }) => id === edited?.memory.id)
  const shown = edited === undefined || isListed ? memories : [edited.memory, ...memories]
  return html`<section id="memories" aria-label="Memories">
    ${creationForm(view)}
    ${cards(
      shown.map((memory) =>
        memoryCard(memory.id === edited?.memory.id ? edited : { memory, form: update }),
      ),
      'No memories match these filters.',
    )}
    ${nextLink(older, 'More memories')}
  </section>`
}

export function memoryCard({ memory, form: state, isSaved = false }: MemoryCard): Html {
  const { id, service, category, observation, confidence, active, session_id, updated_at } = memory
  const stored = { observation, confidence: String(confidence), active: String(active) }
  const form = { id: `memory-${id}`, ...state, typed: { ...stored, ...state.typed } }
  return html`<article class="panel card" id="memory-${id}" aria-labelledby="memory-title-${id}">
    ${isSaved && saved('Saved.')}
    <div class="title-line">
      <h2 id="memory-title-${id}"><bdi>${service ?? 'Everything'}</bdi>: <bdi>${category}</bdi></h2>
      ${!active && html`<span class="badge">inactive</span>`}
    </div>
    <p class="observation">${observation}</p>
    <p class="muted">
      Confidence ${confidence} ·
      ${
        session_id === null
          ? 'noted by hand'
          : html`<a href="/sessions/${session_id}">session ${session_id}</a>`
      }
      · ${timeTag(updated_at)}
    </p>
    ${disclosed('Edit…', html`${updateForm(id, form)} ${deleteForm(id)}`, {
      open: form.fault !== undefined,
      summaryId: `edit-${id}`,
    })}
  </article>`
}

/** Takes the place of a memory that was deleted. */
export function deletedMemory(id: number): Html {
  return html`<p class="panel" id="memory-${id}" role="status">Deleted.</p>`
}

function updateForm(id: number, form: Form): Html {
  return postForm(
    { action: `/memories/${id}`, target: `#memory-${id}` },
    html`${refusal(form)} ${memoryFields(form)}
      <p class="field">${submit('Save', { class: 'primary', id: `save-${id}` })}</p>`,
  )
}

function deleteForm(id: number): Html {
  const confirm = 'Delete this memory?'
  return postForm(
    { action: `/memories/${id}/delete`, target: `#memory-${id}`, confirm },
    submit('Delete', { class: 'danger', id: `delete-${id}` }),
  )
}

function creationForm({ creation, categories, isSaved = false }: MemoriesView): Html {
  const form = { id: 'new', ...creation }
  return disclosed(
    'New memory…',
    postForm(
      { class: 'stack changes', action: '/memories', target: '#memories' },
      html`${isSaved && saved('Saved.')} ${refusal(form)}
        ${field(form, 'service', 'Service (empty for everything)')}
        ${field(form, 'category', 'Category', { list: 'categories' })}
        <datalist id="categories">
          ${categories.map((category) => html`<option value="${category}"></option>`)}
        </datalist>
        ${memoryFields(form)}
        <p class="field">${submit('Add memory', { class: 'primary', id: 'add-memory' })}</p>`,
    ),
    {
      class: 'panel',
      id: 'new-memory',
      open: isSaved || form.fault !== undefined,
      summaryId: 'new-memory-summary',
    },
  )
}

/** The fields that can be changed later, too. */
function memoryFields(form: Form): Html {
  return html`${field(form, 'observation', 'Observation', { rows: 3 })}
  ${field(form, 'confidence', 'Confidence (0 to 1)')}
  ${checkbox(form, 'active', 'Active: sessions are told')}`
}

function memoryFilter({ service, category }: MemoriesView): Html {
  const byService = { name: 'service', id: 'filter-service', value: service ?? '' }
  const byCategory = { name: 'category', id: 'filter-category', value: category ?? '' }
  return filterForm(
    'Memories',
    { path: '/memories', results: 'memories' },
    html`${filterText('Service', { ...byService, labelClass: 'half' })}
      ${filterText('Category', { ...byCategory, list: 'categories', labelClass: 'half' })}
      <button type="submit" id="memories-filter">Filter</button>`,
  )
}
