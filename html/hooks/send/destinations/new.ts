import { html, type Html } from '../../../../kernel/html.ts'
import type { FormState, Page } from '../../../../kernel/http/view.ts'
import { field, NAME, postForm, refusal, submit } from '../../../form.ts'
import { destinationFields, testButton, testResult, urlField, type FormHelp } from './form.ts'

/** What the page shows on which a destination is added. */
interface NewDestinationView {
  help: FormHelp
  form: FormState
}

/** The page on which a destination is added. No destination can have its name. */
export const NEW_PATH = '/destinations/-/new'
/** Sends a test of what is typed there. */
export const TEST_NEW_PATH = '/destinations/-/test'

export function newDestinationPage(view: NewDestinationView): Page {
  return {
    title: 'Add a destination',
    section: 'destinations',
    body: newDestinationFragment(view),
  }
}

/** The page's content, and the answer to its form when it is refused. */
export function newDestinationFragment({ help, form: state }: NewDestinationView): Html {
  const form = { id: 'add', ...state }
  const own = {
    id: 'add-destination',
    class: 'panel stack',
    action: '/destinations',
    target: '#new-destination',
  }
  return html`<div id="new-destination">
    <p class="crumb"><a href="/destinations">Destinations</a> / Add</p>
    <h1>Add a destination</h1>
    <p class="muted">
      The server delivers each event from then on to the URL, at least once, with retries over a
      day. Private addresses are refused unless <code>HOOKS_REPLAY_TARGETS</code> lists them.
    </p>
    ${postForm(
      own,
      html`${refusal(form)} ${urlField(form)}
        ${field(form, 'name', 'Name', { ...NAME, placeholder: 'from the URL' })}
        ${destinationFields(form, help)}
        <p class="actions">
          ${submit('Add destination', { class: 'primary', id: 'add-button' })}
          ${testButton(TEST_NEW_PATH)}
        </p>
        ${testResult(help.tested)}`,
    )}
  </div>`
}
