import type { Memory } from '../../db/ops/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { timeTag } from '../text.ts'
import { opsPage } from './layout.ts'
import {
  memoryFields,
  newMemoryForm,
  type MemoryTyped,
  type NewMemoryView,
} from './memory-forms.ts'
import { nextLink, refusedNote } from './parts.ts'

/** What `/memories` shows. */
export interface MemoriesView {
  readonly memories: readonly Memory[]
  readonly service: string | null
  readonly category: string | null
  readonly older: string | undefined
  readonly added: NewMemoryView
  /** A memory whose change was refused. */
  readonly edited: EditedMemory | null
}

/** The state of a form that changes a memory. */
export interface EditedMemory {
  readonly id: number
  /** What was typed into a form that was refused. */
  readonly typed: MemoryTyped | null
  readonly refused: string | null
  readonly saved: boolean
}

export function memoriesPage(view: MemoriesView): Html {
  return opsPage({
    title: 'Memories',
    section: 'memories',
    body: html`<h1>Memories</h1>
      <p class="muted">
        What sessions learned and you noted. Active ones are told to every session.
      </p>
      ${filterForm(view)} ${memoriesFragment(view)}`,
  })
}

/** List and form: the answer to `POST /memories`. */
export function memoriesFragment({ memories, older, added, edited }: MemoriesView): Html {
  return html`<section id="memories" aria-label="Memories">
    ${newMemoryForm(added)}
    ${
      memories.length === 0
        ? html`<p class="panel empty">There is no such memory.</p>`
        : html`<div class="cards">
            ${memories.map((memory) => memoryCard(memory, edited?.id === memory.id ? edited : null))}
          </div>`
    }
    ${nextLink(older, 'More memories')}
  </section>`
}

/** One memory, to be changed in its place: the answer to `POST /memories/{id}`. */
export function memoryCard(memory: Memory, edited: EditedMemory | null = null): Html {
  const { id, service, category, observation, confidence, active, session_id, updated_at } = memory
  const refused = edited?.refused ?? null
  const typed = edited?.typed ?? { observation, confidence: String(confidence), active }
  const action = `/memories/${id}`
  return html`<article class="panel card" id="memory-${id}" aria-labelledby="memory-title-${id}">
    ${edited?.saved === true && html`<p class="saved" role="status">Saved.</p>`}
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
    <details class="changes" ${refused !== null && html`open`}>
      <summary id="edit-${id}">Edit…</summary>
      <form
        method="post"
        action="${action}"
        hx-post="${action}"
        hx-target="#memory-${id}"
        hx-swap="outerHTML"
      >
        ${refusedNote(refused, `memory-refused-${id}`)} ${memoryFields(`memory-${id}`, typed)}
        <p class="field"><button type="submit" class="primary" id="save-${id}">Save</button></p>
      </form>
      <form
        method="post"
        action="${action}/delete"
        hx-post="${action}/delete"
        hx-target="#memory-${id}"
        hx-swap="outerHTML"
        hx-confirm="Delete this memory?"
      >
        <button type="submit" class="danger" id="delete-${id}">Delete</button>
      </form>
    </details>
  </article>`
}

/** In the place of a memory that was deleted. */
export function deletedMemory(id: number): Html {
  return html`<p class="panel" id="memory-${id}" role="status">Deleted.</p>`
}

function filterForm({ service, category }: MemoriesView): Html {
  return html`<form
    class="filter"
    role="search"
    aria-label="Memories"
    method="get"
    action="/memories"
  >
    <label class="half">
      Service
      <input name="service" id="filter-service" value="${service}" autocomplete="off" />
    </label>
    <label class="half">
      Category
      <input
        name="category"
        id="filter-category"
        value="${category}"
        autocomplete="off"
        list="categories"
      />
    </label>
    <button type="submit" id="memories-filter">Filter</button>
  </form>`
}
