import { html, type Html } from '../../kernel/html.ts'
import { refusedNote } from './parts.ts'

/** The form that starts a session, and what came of it. */
export interface TriggerView {
  readonly prompt: string
  /** `auto`, or the number of a tier. */
  readonly tier: string
  readonly refused: string | null
  /** The session that it has just started. */
  readonly started: number | null
}

export const NEW_TRIGGER: TriggerView = { prompt: '', tier: 'auto', refused: null, started: null }

const TIERS = [
  ['auto', 'auto (begin at tier 1)'],
  ['1', '1 – observe'],
  ['2', '2 – investigate'],
  ['3', '3 – remediate'],
] as const

/** The form alone: the answer to `POST /sessions/trigger`. */
export function triggerForm({ prompt, tier, refused, started }: TriggerView): Html {
  return html`<form
    id="trigger"
    class="panel"
    method="post"
    action="/sessions/trigger"
    hx-post="/sessions/trigger"
    hx-swap="outerHTML"
    aria-labelledby="trigger-title"
  >
    ${refusedNote(refused, 'trigger-refused')}
    ${
      started !== null &&
      html`<p class="saved" role="status">
        <a href="/sessions/${started}" autofocus>Session ${started}</a> has begun.
      </p>`
    }
    <h2 id="trigger-title">Start a session</h2>
    <div class="field">
      <label for="trigger-prompt">What to look into</label>
      <textarea
        id="trigger-prompt"
        name="prompt"
        rows="3"
        required
        maxlength="100000"
        ${refused !== null && html`aria-invalid="true" aria-describedby="trigger-refused"`}
      >
${prompt}</textarea>
    </div>
    <div class="filter field">
      <label class="half">
        Tier
        <select name="tier" id="trigger-tier">
          ${TIERS.map(
            ([value, label]) =>
              html`<option value="${value}" ${tier === value && html`selected`}>${label}</option>`,
          )}
        </select>
      </label>
      <button type="submit" class="primary" id="trigger-button">Start session</button>
    </div>
  </form>`
}
