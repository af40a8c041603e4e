import type { Forwarder } from '../../../db/hooks/send/forwarders.ts'
import { html, type Html } from '../../../kernel/html.ts'
import { removalForm } from '../../form.ts'
import { breakable, cards, copyBox, disclosed, facts, section, timeTag } from '../../parts.ts'
import { countOrMore } from './destinations/facts.ts'

/** What the settings page shows of forwarding. */
export interface ForwardersView {
  forwarders: readonly Forwarder[]
  /** Names of those that are connected to this process. */
  connected: readonly string[]
  /** Up to where waiting events are counted. */
  countedTo: number
  baseUrl: string
}

const FORGOTTEN = 'The next connection under this name starts from new events.'
const COMMAND = html`<code>gatehouse forward</code>`

/** The part of `/settings` about forwarding, and the answer to its form. */
export function forwardersFragment(view: ForwardersView): Html {
  const { forwarders, baseUrl } = view
  const list = forwarders.map((forwarder) => forwarderCard(forwarder, view))
  const content = html`<p class="muted">
      Programs that the server can't reach get each event from ${COMMAND}, which is known here by
      its name.
    </p>
    ${cards(list, 'No forwarder has connected yet. Where the program runs:', firstCommand(baseUrl))}`
  return section('forwarders-title', 'Forwarders', content, { id: 'forwarders' })
}

function firstCommand(baseUrl: string): Html {
  const command = `gatehouse forward http://localhost:3000/hook --from ${baseUrl}`
  return copyBox('forward-command', 'command', command)
}

function forwarderCard(forwarder: Forwarder, { connected, countedTo }: ForwardersView): Html {
  const { name, position, waiting, updated_at } = forwarder
  const key = encodeURIComponent(name)
  const here = connected.includes(name)
  const form = { action: `/settings/forwarders/${key}/forget`, target: '#forwarders' }
  return html`<article class="panel card" aria-labelledby="forwarder-${key}">
    <h3 id="forwarder-${key}"><bdi>${breakable(name)}</bdi></h3>
    ${facts({
      State: stateBadge(here),
      'Done up to': position === 0 ? 'nothing yet' : html`event ${position}`,
      'Newer events': countOrMore(waiting, countedTo),
      'Last heard of': timeTag(updated_at),
    })}
    ${!here && disclosed('Forget…', removalForm('Forget', name, FORGOTTEN, form))}
  </article>`
}

/** One that is connected to another instance on the same database is away, too. */
function stateBadge(here: boolean): Html {
  return here
    ? html`<span class="badge verified">connected</span>`
    : html`<span class="badge" title="Not connected to this process">away</span>`
}
