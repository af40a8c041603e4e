import type { Destination } from '../../../../db/hooks/send/destinations.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { Page } from '../../../../kernel/http/view.ts'
import { breakable, emptyState, listTable, rowLink, tableRow } from '../../../parts.ts'
import { lastAnswer } from '../../layout.ts'
import { listUrl } from './deliveries.ts'
import { countOrMore, eventsText, placeText, stateBadge } from './facts.ts'
import { NEW_PATH } from './new.ts'

/** What `/destinations` shows. */
export interface DestinationsView {
  destinations: readonly Destination[]
  /** Up to where waiting and dead deliveries are counted. */
  countedTo: number
  /** All providers that there are. */
  providers: readonly string[]
}

/** `/destinations`: where events are delivered onwards; those that fail come first. */
export function destinationsPage(view: DestinationsView): Page {
  return {
    title: 'Destinations',
    section: 'destinations',
    body: destinationsFragment(view),
  }
}

/** The page's content, and the answer to a removal. */
export function destinationsFragment(view: DestinationsView): Html {
  const none = emptyState(
    'No destinations yet.',
    html`<p>Gatehouse can deliver each event onwards, with retries over a day.</p>`,
  )
  const rows = view.destinations
    .toSorted((a, b) => urgency(a) - urgency(b))
    .map((one) => destinationRow(one, view))
  const columns = [
    'State',
    'Destination',
    'Events',
    ...['Delivered', 'Waiting', 'Dead'].map((number) => ({ number })),
    'Last answer',
  ]
  return html`<div id="destinations">
    <div class="title-line">
      <h1>Destinations</h1>
      <a class="button primary" href="${NEW_PATH}">Add a destination</a>
    </div>
    ${listTable({
      bodyId: 'destination-rows',
      caption: 'Destinations, those that fail first',
      columns,
      kind: 'dense destinations',
      rows,
      whenEmpty: none,
    })}
  </div>`
}

/** Those that need somebody come first, those that an operator has disabled last. */
function urgency({ failing, dead, disabled_by }: Destination): number {
  if (failing) return 0
  if (disabled_by !== null) return 3
  return dead > 0 ? 1 : 2
}

function destinationRow(destination: Destination, view: DestinationsView): Html {
  const { name, delivered, waiting, dead, failing } = destination
  const { countedTo, providers } = view
  const href = dead > 0 ? listUrl(destination, 'dead', '') : `/destinations/${name}`
  const none = waiting === 0 && dead === 0
  return tableRow(
    { id: `destination-${name}`, 'data-destination': name },
    {
      verify: stateBadge(destination),
      type: html`${rowLink(href, name)}
        <span class="place">→ ${breakable(placeText(destination))}</span>`,
      wanted: eventsText(destination, providers),
      'number delivered': html`${delivered.toLocaleString('en')} ${unit('delivered')}`,
      'number waiting': html`${countOrMore(waiting, countedTo)} ${unit('waiting')}`,
      'number dead': html`<span class="${dead > 0 && 'trouble'}"
          >${countOrMore(dead, countedTo)}</span
        >
        ${unit('dead')}`,
      answered: html`<span class="${failing && 'trouble'}"
        >${lastAnswer(destination, none ? 'none yet' : 'not tried yet')}</span
      >`,
    },
  )
}

/** What the number is, where the head of the table is not shown. */
function unit(word: string): Html {
  return html`<span class="narrow-only">${word}</span>`
}
