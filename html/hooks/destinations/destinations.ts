import type { Destination } from '../../../db/hooks/destinations.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, Page } from '../../../kernel/http/view.ts'
import { field, postForm, submitLine } from '../../form.ts'
import { cards, section } from '../../parts.ts'
import { NAME } from '../layout.ts'
import { destinationFacts, stateBadge } from './facts.ts'
import { destinationFields } from './form.ts'

/** What `/destinations` shows. */
export interface DestinationsView {
  destinations: readonly Destination[]
  /** Up to where waiting and dead deliveries are counted. */
  countedTo: number
  /** The form that adds one. */
  form: FormState
}

/** `/destinations`: where events are delivered onwards, with the waiting deliveries of each. */
export function destinationsPage(view: DestinationsView): Page {
  return {
    title: 'Destinations',
    section: 'destinations',
    body: destinationsFragment(view),
  }
}

/** The page's content, and the answer to its forms. */
export function destinationsFragment(view: DestinationsView): Html {
  const { destinations } = view
  const list = destinations.map((destination) => destinationCard(destination, view))
  return html`<div id="destinations">
    <h1>Destinations</h1>
    ${cards(list, 'No destinations yet.')} ${addForm(view.form)}
  </div>`
}

function destinationCard(destination: Destination, { countedTo }: DestinationsView): Html {
  const { name } = destination
  return html`<article
    class="panel card"
    id="destination-${name}"
    data-destination="${name}"
    aria-labelledby="name-${name}"
  >
    <div class="title-line">
      <h2 id="name-${name}"><a href="/destinations/${name}">${name}</a></h2>
      ${stateBadge(destination)}
    </div>
    ${destinationFacts(destination, countedTo)}
    <p class="actions">
      <a href="/destinations/${name}"
        >Change, retry or remove <span class="hidden">${name}</span></a
      >
    </p>
  </article>`
}

function addForm(state: FormState): Html {
  const form = { id: 'add', ...state }
  const content = html`<p class="muted">
      The server delivers each event from then on to the URL, at least once, with retries over a
      day. Private addresses are refused unless <code>HOOKS_REPLAY_TARGETS</code> lists them.
    </p>
    ${postForm(
      { id: 'add-destination', class: 'stack', action: '/destinations', target: '#destinations' },
      html`${field(form, 'name', 'Name', { ...NAME })} ${destinationFields(form)}
      ${field(form, 'since', 'First event', {
        placeholder: 'the next one',
        hint: 'The id of an event, or a time such as 2026-01-31T12:00:00Z.',
      })}
      ${submitLine('Add destination', 'add-button')}`,
    )}`
  return section('add-title', 'Add a destination', content, { class: 'panel' })
}
