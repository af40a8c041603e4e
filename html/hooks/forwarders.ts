import type { Forwarder } from '../../db/hooks/forwarders.ts'
import { html, type Html } from '../../kernel/html.ts'
import { breakable, timeTag, copyBox, disclosed, fact } from '../parts.ts'
import { postForm, submit } from '../form.ts'

/** What the settings page shows of forwarding. */
export interface ForwardersView {
  readonly forwarders: readonly Forwarder[]
  /** Names of those that are connected to this process. */
  readonly connected: readonly string[]
  /** Up to where waiting events are counted. */
  readonly countedTo: number
  readonly baseUrl: string
}

/** The part of `/settings` about forwarding, and the answer to its form. */
export function forwardersFragment(view: ForwardersView): Html {
  const { forwarders, baseUrl } = view
  return html`<section id="forwarders" aria-labelledby="forwarders-title">
    <h2 id="forwarders-title">Forwarders</h2>
    <p class="muted">
      Programs that the server can't reach get each event from <code>gatehouse forward</code>, which
      is known here by its name.
    </p>
    ${
      forwarders.length === 0
        ? html`<div class="panel empty">
            <p>No forwarder has connected yet. Where the program runs:</p>
            ${copyBox(
              'forward-command',
              'command',
              `gatehouse forward http://localhost:3000/hook --from ${baseUrl}`,
            )}
          </div>`
        : html`<div class="cards">
            ${forwarders.map((forwarder) => forwarderCard(forwarder, view))}
          </div>`
    }
  </section>`
}

function forwarderCard(forwarder: Forwarder, { connected, countedTo }: ForwardersView): Html {
  const { name, position, waiting, updated_at } = forwarder
  const key = encodeURIComponent(name)
  const here = connected.includes(name)
  return html`<article class="panel card" aria-labelledby="forwarder-${key}">
    <h3 id="forwarder-${key}"><bdi>${breakable(name)}</bdi></h3>
    <dl class="facts">
      ${fact('State', stateBadge(here))}
      ${fact('Done up to', position === 0 ? 'nothing yet' : html`event ${position}`)}
      ${fact('Newer events', waiting < countedTo ? waiting : html`${countedTo} or more`)}
      ${fact('Last heard of', timeTag(updated_at))}
    </dl>
    ${!here && disclosed('Forget…', forgetForm(name, key))}
  </article>`
}

/** A forwarder may be connected to another instance on the same database, which nobody tells us. */
function stateBadge(here: boolean): Html {
  return here
    ? html`<span class="badge verified">connected</span>`
    : html`<span class="badge" title="Not connected to this process">away</span>`
}

function forgetForm(name: string, key: string): Html {
  const effect = 'Under this name forwarding starts anew, from the events of then.'
  const confirm = `Forget ${name}? ${effect}`
  return postForm(
    { action: `/settings/forwarders/${key}/forget`, target: '#forwarders', confirm },
    html`<p>${effect}</p>
      ${submit(html`Forget <span class="hidden">${name}</span>`, { class: 'danger' })}`,
  )
}
