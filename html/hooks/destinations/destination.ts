import type { Delivery, Destination } from '../../../db/hooks/destinations.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, Page } from '../../../kernel/http/view.ts'
import {
  checkbox,
  field,
  hiddenField,
  postForm,
  refusal,
  removalForm,
  submit,
  submitLine,
  switchForm,
} from '../../form.ts'
import { disclosed, polled, section } from '../../parts.ts'
import { deliveriesList, listUrl } from './deliveries.ts'
import { destinationFacts } from './facts.ts'
import { destinationFields } from './form.ts'

/** What `/destinations/{name}` shows. */
export interface DestinationView {
  destination: Destination
  /** Up to where waiting and dead deliveries are counted. */
  countedTo: number
  /** The form that changes it. */
  form: FormState
  /** Which deliveries are listed, and after which event. */
  state: Delivery['state']
  cursor: string
  deliveries: readonly Delivery[]
  next_cursor: string | null
}

/** `/destinations/{name}`: its state, its deliveries, and its settings. */
export function destinationPage(view: DestinationView): Page {
  const { name } = view.destination
  return {
    title: name,
    section: 'destinations',
    body: destinationFragment(view),
  }
}

/** The page's content, and the answer to its forms. */
export function destinationFragment(view: DestinationView): Html {
  const { destination } = view
  const { name } = destination
  return html`<div id="destination" data-destination="${name}">
    <p class="crumb"><a href="/destinations">Destinations</a> / ${name}</p>
    <div class="title-line" id="title">
      <h1 id="name-${name}">${name}</h1>
      ${switchForm(name, destination.disabled_by === null, {
        action: `${pathOf(destination)}/enabled`,
        target: '#destination',
      })}
    </div>
    ${stateSection(view)} ${retryForm(destination)} ${setForm(view)} ${removal(name)}
  </div>`
}

/** What is live on the page. */
function stateSection(view: DestinationView): Html {
  const { destination, countedTo, state, cursor } = view
  const path = listUrl(destination, state, cursor)
  const own = {
    ...{ id: 'state', class: 'panel', ...polled(path, 3, 'state') },
    // The switch: failures or another person may disable the destination.
    'hx-select-oob': '#title:outerMorph',
  }
  const content = html`${destinationFacts(destination, countedTo)} ${deliveriesList(view)}`
  return section('state-title', 'State', content, own)
}

function pathOf({ name }: Pick<Destination, 'name'>): string {
  return `/destinations/${name}`
}

function retryForm(destination: Destination): Html {
  const form = {
    action: `${pathOf(destination)}/retry`,
    target: '#destination',
    class: 'stack',
  }
  const content = postForm(
    form,
    html`<p class="hint">Tries at once what waits for another try.</p>
      ${checkbox({ id: 'retry' }, 'dead', 'Also what was given up')}
      <p>${submit('Retry deliveries', { id: 'retry-all' })}</p>`,
  )
  return section('retry-title', 'Retry', content, { class: 'panel' })
}

function setForm({ destination, form: state }: DestinationView): Html {
  const form = { id: 'set', ...state }
  const content = html`<p class="muted">
      Waiting deliveries stay. New filters apply to events after the last checked one.
    </p>
    ${refusal(form)}
    ${postForm(
      {
        id: 'set-destination',
        class: 'stack',
        action: pathOf(destination),
        target: '#destination',
      },
      html`${hiddenField('version', destination.version)} ${destinationFields(form, destination)}
      ${field(form, 'since', 'Send again from', {
        placeholder: 'nothing',
        hint: 'The id of an event, or a time such as 2026-01-31T12:00:00Z.',
      })}
      ${submitLine('Save', 'set-button')}`,
    )}`
  return section('set-title', 'Settings', content, { class: 'panel' })
}

function removal(name: string): Html {
  const effect = 'Its waiting events are not delivered; attempts stay with their events.'
  const form = {
    action: `/destinations/${name}/remove`,
    target: '#destination',
    'hx-push-url': '/destinations',
  }
  return html`<div class="panel">
    ${disclosed('Remove…', removalForm('Remove', name, effect, form))}
  </div>`
}
