import { html, type Html } from '../../../../kernel/html.ts'
import type { Page } from '../../../../kernel/http/view.ts'
import { rowFilter } from '../../../form.ts'
import { section } from '../../../parts.ts'
import {
  createUrlForm,
  firstDelivery,
  waitingPage,
  type FirstDelivery,
} from '../../first-delivery.ts'
import { addForm, type AddForm, type KeptProvider, type Sender } from './form.ts'
import { madeBox, type Made } from './providers.ts'

/**
 * What `/providers/new` shows: who may send, the form of one sender, or what was added. With
 * `kept` it is `/providers/NAME/verify`, for a provider that has its URL already.
 */
export type AddStep =
  | ({ kind: 'senders'; name: string; kept?: KeptProvider } & SenderGroups)
  | ({ kind: 'form'; name: string } & AddForm)
  | { kind: 'added'; made: Made; first: FirstDelivery }

/** Those that most people add, and all others. */
interface SenderGroups {
  common: readonly Sender[]
  others: readonly Sender[]
}

/**
 * The page of a step. `position` is the newest event: the stream goes on from there, and says when
 * the first delivery has come.
 */
export function addPage(step: AddStep, position: number): Page {
  const name = step.kind === 'added' ? undefined : step.kept?.name
  return waitingPage(
    name === undefined ? 'Add a provider' : `Verify ${name}`,
    addFragment(step),
    position,
  )
}

/** The step, which the answer to its form replaces. */
export function addFragment(step: AddStep): Html {
  return html`<div id="new-provider">${content(step)}</div>`
}

function content(step: AddStep): Html {
  if (step.kind === 'senders') return senderTiles(step)
  if (step.kind === 'form') {
    return html`<p class="actions">
        <strong>${step.sender.title}</strong>
        <a href="${stepUrl(step.kept, { name: step.name })}">Choose another sender</a>
      </p>
      ${addForm(step)}`
  }
  return html`${madeBox(step.made)} ${firstDelivery(step.first)}`
}

/** Each sender that is known, as a link to its form. */
function senderTiles({ common, others, name, kept }: AddStep & { kind: 'senders' }): Html {
  const tiles = (senders: readonly Sender[]): Html => {
    const items = senders.map(({ scheme, title }) => {
      return html`<li data-find="${title} ${scheme}">
        <a href="${stepUrl(kept, { scheme, name })}">${title}</a>
      </li>`
    })
    return html`<ul class="choices">
      ${items}
    </ul>`
  }
  const count = common.length + others.length
  return section(
    'senders-title',
    'Who sends?',
    html`${rowFilter('Find a sender', 'sender-tiles', count, { autofocus: true })}
      <div id="sender-tiles">${tiles(common)} ${tiles(others)}</div>
      <p><a href="/providers/senders">What is verified of each sender</a></p>`,
    {},
    kept === undefined &&
      html`<div class="actions">
        <span>Not sure? Look at a delivery first:</span> ${createUrlForm()}
      </div>`,
  )
}

function stepUrl(
  kept: KeptProvider | undefined,
  { scheme, name }: { scheme?: string; name: string },
): string {
  const path = kept === undefined ? 'new' : `${encodeURIComponent(kept.name)}/verify`
  const isNamed = kept === undefined && name !== ''
  const query = new URLSearchParams({ ...(scheme && { scheme }), ...(isNamed && { name }) })
  return query.size === 0 ? `/providers/${path}` : `/providers/${path}?${query}`
}
