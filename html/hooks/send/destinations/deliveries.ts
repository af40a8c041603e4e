import type { Delivery, Destination } from '../../../../db/hooks/send/destinations.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import { checkbox, hiddenField, postForm, submit } from '../../../form.ts'
import { breakable, emptyState, listTable, rowLink, tableRow, timeTag } from '../../../parts.ts'
import { tabs } from '../../../ways.ts'
import { lastAnswer } from '../../layout.ts'
import { countOrMore } from './facts.ts'

/** The deliveries that the page of a destination lists. */
interface DeliveriesView {
  destination: Destination
  countedTo: number
  state: Delivery['state']
  cursor: string
  deliveries: readonly Delivery[]
  next_cursor: string | null
}

/** The address of a page of the list. */
export function listUrl(
  { name }: Pick<Destination, 'name'>,
  state: Delivery['state'],
  cursor: string,
): string {
  return `/destinations/${name}?${queryOf(state, cursor)}`
}

function queryOf(state: Delivery['state'], cursor: string): string {
  return new URLSearchParams({ state, ...(cursor !== '' && { cursor }) }).toString()
}

/** What waits or was given up, each with a box: the ticked ones are tried again. */
export function deliveriesList(view: DeliveriesView): Html {
  const { destination, state, cursor, deliveries, next_cursor } = view
  const form = {
    action: `/destinations/${destination.name}/deliveries?${queryOf(state, cursor)}`,
    target: '#destination',
    id: 'deliveries',
  }
  const table = listTable({
    bodyId: 'delivery-rows',
    caption: state === 'dead' ? 'Deliveries given up' : 'Deliveries that wait',
    columns: ['Retry', 'Event', 'Type', 'Last answer', 'Next try'],
    kind: 'deliveries',
    rows: deliveries.map(deliveryRow),
    ...(next_cursor !== null && {
      more: { next: listUrl(destination, state, next_cursor), appends: false },
    }),
  })
  const list = html`${table}
    <p class="actions">${submit('Retry selected', { id: 'retry-chosen' })}</p>`
  const empty = state === 'dead' ? 'Nothing was given up.' : 'Nothing waits.'
  if (deliveries.length === 0) return html`${kinds(view)} ${emptyState(empty)}`
  return html`<div class="title-line">${kinds(view)} ${retryAll(view)}</div>
    ${postForm(form, list)}`
}

/** Tries again at once what is listed, also on its further pages. */
function retryAll({ destination, state }: DeliveriesView): Html {
  const isDead = state === 'dead'
  return postForm(
    { action: `/destinations/${destination.name}/retry`, target: '#destination' },
    html`${isDead && hiddenField('dead', 'true')} ${submit('Retry all', { id: 'retry-all' })}`,
  )
}

/** The ways to what waits and to what was given up. */
function kinds({ destination, state, countedTo }: DeliveriesView): Html {
  const { waiting, dead } = destination
  const count = (value: number) => countOrMore(value, countedTo)
  const tab = (kind: Delivery['state'], label: string) => {
    return { href: listUrl(destination, kind, ''), label, isCurrent: kind === state }
  }
  return tabs('Deliveries', [
    tab('waiting', `Waiting (${count(waiting)})`),
    tab('dead', `Given up (${count(dead)})`),
  ])
}

const CHOSEN = { id: 'chosen' }

function deliveryRow(delivery: Delivery): Html {
  const { event_id: id, provider, event_type, tries, next_at } = delivery
  return tableRow(
    { 'data-delivery': id },
    {
      choose: checkbox(CHOSEN, 'events', html`<span class="hidden">Event ${id}</span>`, {
        value: id,
      }),
      id: rowLink(`/log/${id}`, `#${id}`),
      type: html`<bdi>${breakable(event_type ?? 'no type')}</bdi>
        <span class="detail">${breakable(provider)}</span>`,
      answered: lastAnswer(delivery, 'not tried yet'),
      when: html`${next_at === null ? 'given up' : timeTag(next_at)}
        <span class="detail">${tries === 1 ? '1 try' : `${tries} tries`}</span>`,
    },
  )
}
