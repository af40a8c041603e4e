import { html, type Html } from '../../../../kernel/html.ts'
import type { FormState, Page } from '../../../../kernel/http/view.ts'
import type { EventDetail } from '../../../../services/hooks/log/events/detail.ts'
import { field, postForm, refusal, submit, VERBATIM } from '../../../form.ts'
import { emptyState, section, sizeText } from '../../../parts.ts'
import { replaysList, targetField, type ReplaysView } from './replays.ts'

/** What `/log/{id}/edit` shows. */
interface EditView extends Pick<ReplaysView, 'replays' | 'receivers' | 'defaultTarget'> {
  event: EventDetail
  /** Whether its payload is text, and short enough for the form. */
  isEditable: boolean
  /** Bytes that the form takes. */
  maxBytes: number
  form: FormState
}

/** `/log/{id}/edit`: an event is sent once with another body. */
export function editPage(view: EditView): Page {
  const { event } = view
  const back = html`<a href="/log/${event.id}">${event.id}</a>`
  return {
    title: `Edit event ${event.id}`,
    section: 'log',
    body: html`<p class="crumb"><a href="/log">Log</a> / ${back} / Edit</p>
      <h1>Edit and send</h1>
      <p class="muted">
        Sends event ${event.id} once with this body, signed again for a signed provider, and with
        the header <code>X-Gatehouse-Edited</code>. The stored event does not change.
      </p>
      ${editPart(view)}`,
  }
}

/** The form and the attempts: the answer to the form. */
export function editPart(view: EditView): Html {
  return html`<div id="edit-part">
    ${view.isEditable ? editForm(view) : notEditable(view)}
    ${section('attempts-title', 'Attempts', replaysList(view))}
  </div>`
}

function editForm(view: EditView): Html {
  const { event, form } = view
  const own = { id: 'edit', ...form }
  return postForm(
    { id: 'edit-form', class: 'stack', action: `/log/${event.id}/edit`, target: '#edit-part' },
    html`${refusal(own)}
      ${field(own, 'content_type', 'Content type', { ...VERBATIM, placeholder: 'none' })}
      ${field(own, 'payload', 'Body', { ...VERBATIM, rows: 16 })} ${targetField(own, view)}
      <p class="field">
        ${submit('Send edited event', { class: 'primary', id: 'send-edited' })}
      </p>`,
  )
}

function notEditable({ event, maxBytes }: EditView): Html {
  const way = html`<a href="/log/${event.id}">Back to the event</a>`
  const text = `Only text of at most ${sizeText(maxBytes)} can be edited here.`
  return emptyState(text, way)
}
