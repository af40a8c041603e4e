import type { Rejection } from '../../../../db/hooks/receive/rejections.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { Page } from '../../../../kernel/http/view.ts'
import { rowFilter } from '../../../form.ts'
import { attributes, breakable, copyBox, followed, section, timeTag } from '../../../parts.ts'
import { logUrl } from '../../log-url.ts'
import { addForm, type AddForm, type Sender } from './form.ts'
import { madeBox, type Made } from './providers.ts'

/** What `/providers/new` shows: who may send, the form of one sender, or what was added. */
export type AddStep =
  | { kind: 'senders'; senders: readonly Sender[]; name: string }
  | ({ kind: 'form'; name: string } & AddForm)
  | { kind: 'added'; made: Made; first: FirstDelivery }

/** What has come of a provider so far. */
export interface FirstDelivery {
  name: string
  enabled: boolean
  /** The newest event; null before the first one. */
  last_event_at: Date | null
  /** The newest refused delivery. */
  rejection: Pick<Rejection, 'at' | 'status' | 'reason'> | undefined
}

/** The id of what follows the stream, on each page that waits for a delivery. */
const SOURCE = 'add-provider'

/**
 * `/providers/new`. `position` is the newest event: the stream goes on from there, and says when
 * the first delivery has come.
 */
export function addPage(step: AddStep, position: number): Page {
  return waitingPage('Add a provider', addFragment(step), position)
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
        <a href="${newUrl(undefined, step.name)}">Choose another sender</a>
      </p>
      ${addForm(step)}`
  }
  return html`${madeBox(step.made)} ${firstDelivery(step.first)}`
}

/** Each sender that is known, as a link to its form. */
function senderTiles({ senders, name }: { senders: readonly Sender[]; name: string }): Html {
  const tiles = senders.map(({ scheme, title }) => {
    return html`<li data-find="${title} ${scheme}">
      <a href="${newUrl(scheme, name)}">${title}</a>
    </li>`
  })
  return section(
    'senders-title',
    'Who sends?',
    html`${rowFilter('Find a sender', 'sender-tiles', senders.length, { autofocus: true })}
      <ul id="sender-tiles" class="choices">
        ${tiles}
      </ul>
      <p><a href="/providers/senders">What is verified of each sender</a></p>`,
  )
}

function newUrl(scheme: string | undefined, name: string): string {
  const query = new URLSearchParams({ ...(scheme && { scheme }), ...(name && { name }) })
  return query.size === 0 ? '/providers/new' : `/providers/new?${query}`
}

/** `/providers/NAME/first`: what is to be done at the sender, and whether it has sent. */
export function firstPage(first: FirstDelivery, url: string, position: number): Page {
  const body = html`<p>Send to this URL.</p>
    ${copyBox('made-url', 'URL', breakable(url))} ${firstDelivery(first)}`
  return waitingPage(first.name, body, position)
}

function waitingPage(title: string, body: Html, position: number): Page {
  return {
    title,
    section: 'providers',
    script: 'hooks.js',
    body: html`<h1>${breakable(title)}</h1>
      <div id="${SOURCE}" data-stream="/events" data-last="${position}">${body}</div>`,
  }
}

/** Whether the first delivery has come; it asks again while none has. */
export function firstDelivery(first: FirstDelivery): Html {
  const { name, last_event_at: last } = first
  const path = `/providers/${encodeURIComponent(name)}/first`
  const asks = last === null && followed(path, 'status', SOURCE, 'first-delivery')
  return html`<section${attributes({ id: 'first-delivery', class: 'panel', ...asks })}>
    <h2>First delivery</h2>
    <div role="status">${last === null ? waiting(first) : arrived(name, last)}</div>
    <p class="actions">
      ${last === null && html`<a href="${path}">Look again</a>`}
      <a href="/providers?open=${encodeURIComponent(name)}">Show the provider</a>
    </p>
  </section>`
}

function arrived(name: string, at: Date): Html {
  return html`<p class="good">
    It has arrived, ${timeTag(at)}. <a href="${logUrl({ provider: name })}">Show it in the log</a>
  </p>`
}

function waiting({ name, enabled, rejection }: FirstDelivery): Html {
  return html`<p>Waiting for the first delivery…</p>
    ${!enabled && html`<p class="note">The provider is disabled: deliveries are refused (403).</p>`}
    ${
      rejection !== undefined &&
      html`<p class="refused">
        A delivery was refused with ${rejection.status}, ${timeTag(rejection.at)}:
        ${rejection.reason}.
        <a href="${logUrl({ provider: name, rejected: '1' })}">Show what was refused</a>
      </p>`
    }`
}
