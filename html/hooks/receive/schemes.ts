import { html, type Html } from '../../../kernel/html.ts'
import type { Page } from '../../../kernel/http/view.ts'
import type { SenderInfo } from '../../../services/hooks/receive/schemes/describe.ts'
import { rowFilter } from '../../form.ts'
import { breakable, disclosed, facts } from '../../parts.ts'

/** `/providers/senders`: the senders that are known, and what is to be done at each. */
export function sendersPage(senders: readonly SenderInfo[], baseUrl: string): Page {
  return {
    title: 'Senders',
    section: 'providers',
    body: html`<div class="title-line">
        <h1>Senders</h1>
        <a class="button" href="/providers/new">New provider</a>
      </div>
      <p class="muted">
        Each is a scheme of a provider. This URL means
        <code>${baseUrl}/webhooks/generic/<em>name</em></code
        >, with the name of your provider.
      </p>
      ${rowFilter('Find a sender', 'sender-rows', senders.length)}
      <div id="sender-rows" class="openables">${senders.map(senderRow)}</div>`,
  }
}

function senderRow(sender: SenderInfo): Html {
  const { name, title, verifies } = sender
  const summary = html`<h2>${title}</h2>
    <span class="detail">${name} · ${verifies}</span>`
  return html`<article class="openable" data-find="${title} ${name}">
    ${disclosed(summary, html`<div class="card">${senderFacts(sender)}</div>`, { class: undefined })}
  </article>`
}

/** What is to be done at a sender, and what then is verified. */
export function senderFacts({ name, docs, setup, verifies, tested }: SenderInfo): Html {
  return facts({
    'At the sender': setup,
    Scheme: html`<code>${name}</code>`,
    Verified: html`<code>${verifies}</code>`,
    Tested: tested,
    Documentation: html`<a href="${docs}" rel="noreferrer">${breakable(docs)}</a>`,
  })
}
