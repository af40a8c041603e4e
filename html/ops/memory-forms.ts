import { html, type Html } from '../../kernel/html.ts'
import { refusedNote } from './parts.ts'

/** The fields of a memory as they were typed. */
export interface MemoryTyped {
  readonly observation: string
  readonly confidence: string
  readonly active: boolean
}

/** The form of a new memory, and what came of it. */
export interface NewMemoryView {
  readonly typed: MemoryTyped & { readonly service: string; readonly category: string }
  readonly categories: readonly string[]
  readonly refused: string | null
  readonly saved: boolean
}

/** The fields that can be changed; `prefix` makes their ids unique. */
export function memoryFields(prefix: string, typed: MemoryTyped): Html {
  return html`<label for="${prefix}-observation">Observation</label>
    <textarea id="${prefix}-observation" name="observation" rows="3" required maxlength="10000">
${typed.observation}</textarea>
    <label for="${prefix}-confidence">Confidence (0 to 1)</label>
    <input
      id="${prefix}-confidence"
      name="confidence"
      type="number"
      min="0"
      max="1"
      step="any"
      required
      value="${typed.confidence}"
    />
    <label class="choice">
      <input type="checkbox" name="active" value="true" ${typed.active && html`checked`} />
      Active: it is told to sessions
    </label>`
}

export function newMemoryForm({ typed, categories, refused, saved }: NewMemoryView): Html {
  return html`<details class="panel" id="new-memory" ${(refused !== null || saved) && html`open`}>
    <summary id="new-memory-summary">New memory…</summary>
    <form
      class="stack changes"
      method="post"
      action="/memories"
      hx-post="/memories"
      hx-target="#memories"
      hx-swap="outerHTML"
    >
      ${saved && html`<p class="saved" role="status">Saved.</p>`}
      ${refusedNote(refused, 'new-memory-refused')}
      <label for="new-service">Service (empty for everything)</label>
      <input
        id="new-service"
        name="service"
        maxlength="200"
        autocomplete="off"
        value="${typed.service}"
      />
      <label for="new-category">Category</label>
      <input
        id="new-category"
        name="category"
        required
        maxlength="100"
        list="categories"
        autocomplete="off"
        value="${typed.category}"
      />
      <datalist id="categories">
        ${categories.map((category) => html`<option value="${category}"></option>`)}
      </datalist>
      ${memoryFields('new', typed)}
      <p class="field">
        <button type="submit" class="primary" id="add-memory">Add memory</button>
      </p>
    </form>
  </details>`
}
