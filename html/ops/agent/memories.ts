import type { StoredMemory } from '../../../db/ops/agent/memories.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import {
  checkbox,
  field,
  filterForm,
  postForm,
  refusal,
  submit,
  submitLine,
  type Form,
} from '../../form.ts'
import { contentView } from '../../layout.ts'
import { cards, countLine, countUpTo, disclosed, nextLink, timeTag } from '../../parts.ts'
import { opsView, sessionLink, shortText, type Listed } from '../layout.ts'

/** What `/memories` shows. */
export interface FoundMemories extends Listed<StoredMemory> {
  /** Filters; null for all. */
  service: string | null
  category: string | null
  /** Categories that are suggested. */
  categories: readonly string[]
  creation: FormState
  /** How many match; counted up to `MAX_COUNT`. */
  count: number
}

/** A memory, with the form that changes it where it is edited. */
interface MemoryCard {
  memory: StoredMemory
  form?: FormState
}

export function memoriesView(found: FoundMemories): View {
  const isFiltered = found.service !== null || found.category !== null
  const above = html`<p class="muted">
      What sessions learned and what you noted. Every session is told the active ones. What a
      session learned counts little until you confirm it.
    </p>
    ${memoryFilter(found)}`
  const content = html`<section id="memories" aria-label="Memories">
    ${creationForm(found)}
    ${found.count > 0 && countLine(countUpTo(found.count, 'memory', 'memories'))}
    ${cards(
      found.rows.map((memory) => memoryCard({ memory })),
      isFiltered ? 'No memories match these filters.' : 'No memories yet.',
    )}
    ${nextLink(found.older, 'More memories')}
  </section>`
  return opsView('Memories', content, { above })
}

/** `/memories/{id}`: one memory, to be edited; htmx puts it in the place of its card. */
export function memoryView(card: MemoryCard): View {
  const { id } = card.memory
  const title = `Memory ${id}`
  const above = html`<p class="crumb"><a href="/memories">Memories</a> / ${id}</p>
    <h1 class="hidden">${title}</h1>`
  return contentView({ title, section: 'memories', above }, memoryCard(card))
}

export function memoryCard({ memory, form: state }: MemoryCard): Html {
  const { id, observation, confidence, active, session_id: session, confirmed_by } = memory
  const path = `/memories/${id}`
  const about = memory.service ?? 'Everything'
  const isOfSession = memory.tier > 0
  const source =
    session === null ? (isOfSession ? 'a session' : 'noted by hand') : sessionLink(session)
  const stored = { observation, confidence: String(confidence), active: String(active) }
  const form = state && { id: `memory-${id}`, ...state, typed: { ...stored, ...state.typed } }
  return html`<article class="panel card" id="memory-${id}" aria-labelledby="memory-title-${id}">
    <div class="title-line">
      <h2 id="memory-title-${id}"><bdi>${about}</bdi>: <bdi>${memory.category}</bdi></h2>
      ${!active && html`<span class="badge">inactive</span>`}
    </div>
    <p class="observation">${observation}</p>
    <p class="muted">Confidence ${confidence} · ${source} · ${timeTag(memory.updated_at)}</p>
    ${confirmed_by !== null && html`<p class="muted">Confirmed by <bdi>${confirmed_by}</bdi></p>`}
    ${
      form === undefined
        ? html`<div class="actions">
            ${isOfSession && confirmed_by === null && confirmForm(memory)}
            <a
              id="edit-${id}"
              href="${path}"
              hx-get="${path}"
              hx-target="#memory-${id}"
              hx-swap="outerHTML"
              >Edit…</a
            >
          </div>`
        : html`${updateForm(id, form)} ${deleteForm(id)}`
    }
  </article>`
}

/** Takes the place of a memory that was deleted. */
export function deletedMemory(id: number): Html {
  return html`<p class="panel" id="memory-${id}" role="status">Deleted.</p>`
}

function updateForm(id: number, form: Form): Html {
  return postForm(
    { action: `/memories/${id}`, target: `#memory-${id}` },
    html`${refusal(form)} ${memoryFields(form)} ${submitLine('Save', `save-${id}`)}`,
  )
}

function confirmForm({ id, observation }: StoredMemory): Html {
  return postForm(
    { action: `/memories/${id}/confirm`, target: `#memory-${id}` },
    submit(html`Confirm <span class="hidden">${shortText(observation, 100)}</span>`, {
      id: `confirm-${id}`,
    }),
  )
}

function deleteForm(id: number): Html {
  const confirm = 'Delete this memory?'
  return postForm(
    { action: `/memories/${id}/delete`, target: `#memory-${id}`, confirm },
    submit('Delete', { class: 'danger', id: `delete-${id}` }),
  )
}

function creationForm({ creation, categories }: FoundMemories): Html {
  const form = { id: 'new', ...creation }
  return disclosed(
    'New memory…',
    postForm(
      { class: 'stack changes', action: '/memories', target: '#memories' },
      html`${refusal(form)} ${field(form, 'service', 'Service (empty for everything)')}
      ${field(form, 'category', 'Category', { suggestions: categories })} ${memoryFields(form)}
      ${submitLine('Add memory', 'add-memory')}`,
    ),
    {
      class: 'panel',
      id: 'new-memory',
      open: form.fault !== undefined,
      summaryId: 'new-memory-summary',
    },
  )
}

/** The fields that can be changed later, too. */
function memoryFields(form: Form): Html {
  return html`${field(form, 'observation', 'Observation', { rows: 3 })}
  ${field(form, 'confidence', 'Confidence (0 to 1)')}
  ${checkbox(form, 'active', 'Active: every session gets it')}`
}

function memoryFilter({ service, category, categories }: FoundMemories): Html {
  const form = { id: 'filter', typed: { service: service ?? '', category: category ?? '' } }
  return filterForm(
    'Memories',
    { path: '/memories', results: 'memories' },
    html`${field(form, 'service', 'Service', { width: 'half' })}
    ${field(form, 'category', 'Category', { suggestions: categories, width: 'half' })}
    ${submit('Filter', {})}`,
  )
}
