import type { Destination } from '../../db/hooks/destinations.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { FormState, Page } from '../../kernel/http/view.ts'
import { checkbox, field, postForm, removalForm, submit, submitLine, switchForm } from '../form.ts'
import { breakable, cards, disclosed, facts, saved, section, timeTag } from '../parts.ts'
import { NAME } from './layout.ts'

/** What `/destinations` shows. */
export interface DestinationsView {
  destinations: readonly Destination[]
  /** Up to where waiting and dead deliveries are counted. */
  countedTo: number
  /** The form that adds one. */
  form: FormState
  /** What was just done. */
  notice?: string
}

/** `/destinations`: where events are delivered onwards, and how many wait for each. */
export function destinationsPage(view: DestinationsView): Page {
  return {
    title: 'Destinations',
    section: 'destinations',
    body: html`<h1>Destinations</h1>
      ${destinationsFragment(view)}`,
  }
}

/** The page's content, and the answer to its forms. */
export function destinationsFragment(view: DestinationsView): Html {
  const { destinations, notice } = view
  const list = destinations.map((destination) => destinationCard(destination, view))
  return html`<div id="destinations">
    ${notice !== undefined && saved(notice)} ${cards(list, 'No destinations yet.')}
    ${addForm(view.form)}
  </div>`
}

function destinationCard(destination: Destination, { countedTo }: DestinationsView): Html {
  const { name, url, gap, gap_through, oldest_at: oldest, rate } = destination
  const count = (value: number) => (value < countedTo ? value : html`${value} or more`)
  return html`<article
    class="panel card"
    id="destination-${name}"
    data-destination="${name}"
    aria-labelledby="name-${name}"
  >
    <div class="title-line">
      <h2 id="name-${name}">${name}</h2>
      ${toggle(destination)}
    </div>
    ${destination.disabled_by === 'failures' && DISABLED}
    ${facts({
      URL: html`<code>${breakable(url)}</code>`,
      Events: filters(destination),
      'In order': destination.ordered ? 'one at a time' : false,
      Rate: rate === null ? false : `at most ${rate} a second`,
      Delivered: destination.delivered,
      Waiting: count(destination.waiting),
      'Oldest waiting': oldest !== null && timeTag(oldest),
      Dead: count(destination.dead),
      Gap: gap === 0 ? false : `${gap} removed before they were delivered, up to ${gap_through}`,
      'Last answer': lastAnswer(destination),
      Latency: latency(destination),
      'Checked up to':
        destination.position === 0 ? 'no event yet' : `event ${destination.position}`,
    })}
    ${disclosed('Retry or remove…', changeForms(destination))}
  </article>`
}

const DISABLED = html`<p class="note">
  Disabled: twenty deliveries in a row were given up. Enabled again, it goes on with what came
  meanwhile.
</p>`

function toggle({ name, disabled_by }: Destination): Html {
  const action = `/destinations/${name}/enabled`
  return switchForm(name, disabled_by === null, { action, target: '#destinations' })
}

function filters({ provider, event_type, json }: Destination): Printable {
  const chosen = [
    provider !== null && html`of <bdi>${provider}</bdi>`,
    event_type !== null && html`of type <bdi>${event_type}</bdi>`,
    json !== null && html`with <code>${json}</code>`,
  ].filter((part) => part !== false)
  return chosen.length === 0 ? 'all' : chosen.map((part) => html`${part} `)
}

function lastAnswer({ last_at, last_status, last_detail }: Destination): Printable {
  if (last_at === null) return 'none yet'
  const detail = last_detail !== null && html`<span class="detail">${last_detail}</span>`
  return html`${last_status ?? 'no answer'}, ${timeTag(last_at)} ${detail}`
}

function latency({ mean_ms: mean }: Destination): Printable {
  return mean === null ? false : `${mean < 10 ? mean.toFixed(1) : Math.round(mean)} ms on average`
}

function changeForms({ name, dead }: Destination): Html {
  const retry = `/destinations/${name}/retry`
  const hidden = html`<span class="hidden">of ${name}</span>`
  const effect = 'Its waiting events are not delivered; attempts stay with their events.'
  const removal = { action: `/destinations/${name}/remove`, target: '#destinations' }
  return html`${postForm(
    { action: retry, target: '#destinations', class: 'stack' },
    html`<p class="hint">Tries at once what waits for another try.</p>
      ${dead > 0 && checkbox({ id: `retry-${name}` }, 'dead', 'Also what was given up')}
      <p>${submit(html`Retry deliveries ${hidden}`, { id: `retry-${name}` })}</p>`,
  )}
  ${removalForm('Remove', name, effect, removal)}`
}

function addForm(state: FormState): Html {
  const form = { id: 'add', messagesBelow: true, ...state }
  const ordered = html`<strong>In order</strong> – one event at a time; a failed one holds up those
    behind it`
  const content = html`<p class="muted">
      The server delivers each event from then on to the URL, at least once, with retries over a
      day. Private addresses are refused unless <code>HOOKS_REPLAY_TARGETS</code> lists them.
    </p>
    ${postForm(
      { id: 'add-destination', class: 'stack', action: '/destinations', target: '#destinations' },
      html`${field(form, 'name', 'Name', { ...NAME })}
        ${field(form, 'url', 'URL', { type: 'url', placeholder: 'https://example.com/hook' })}
        <fieldset>
          <legend>Which events</legend>
          ${field(form, 'provider', 'Provider', { placeholder: 'all' })}
          ${field(form, 'event_type', 'Event type', { placeholder: 'all' })}
          ${field(form, 'json', 'Member of the JSON body', {
            placeholder: 'data.object.id=evt_1',
          })}
        </fieldset>
        ${checkbox(form, 'ordered', ordered)}
        ${field(form, 'rate', 'Deliveries a second, at most', {
          placeholder: 'no bound',
          inputmode: 'numeric',
        })}
        ${submitLine('Add destination', 'add-button')}`,
    )}`
  return section('add-title', 'Add a destination', content, { class: 'panel' })
}
