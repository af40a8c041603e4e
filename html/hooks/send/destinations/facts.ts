import type { Destination } from '../../../../db/hooks/send/destinations.ts'
import { html, type Html, type Printable } from '../../../../kernel/html.ts'
import { breakable, facts, timeTag } from '../../../parts.ts'
import { lastAnswer } from '../../layout.ts'

// What is shown of a destination: in its row of the list, and on its own page.

/** What it gets, how, and what became of it; counts are exact below `countedTo`. */
export function destinationFacts(
  destination: Destination,
  { countedTo, providers }: { countedTo: number; providers: readonly string[] },
): Html {
  const { url, gap, gap_through, oldest_at: oldest, rate, timeout_s, body_template } = destination
  const count = (value: number) => countOrMore(value, countedTo)
  return facts({
    URL: html`<code>${breakable(url)}</code>`,
    Events: eventsText(destination, providers),
    'In order': destination.ordered ? 'one at a time' : false,
    Rate: rate === null ? false : `at most ${rate} a second`,
    Timeout: `${timeout_s} s`,
    Body: body_template !== null && html`<code>${body_template}</code>`,
    ...credentials(destination),
    Delivered: destination.delivered,
    Waiting: count(destination.waiting),
    'Oldest waiting': oldest !== null && timeTag(oldest),
    Dead: count(destination.dead),
    Gap: gap === 0 ? false : `${gap} removed before they were delivered, up to ${gap_through}`,
    'Last answer': lastAnswer(destination, 'none yet'),
    Latency: latency(destination),
    'Checked up to': destination.position === 0 ? 'no event yet' : `event ${destination.position}`,
  })
}

/** Above the deliveries of a destination that failures have disabled. */
export const DISABLED_NOTE = html`<p class="note">
  Disabled: twenty deliveries in a row were given up. Enabled again, it goes on with what came
  meanwhile.
</p>`

/** Which credentials it has, never their values. */
function credentials({ sign_with, headers, authorization }: Destination) {
  const names = Object.keys(headers)
  return {
    'Signed with': sign_with !== null && `its own secret, ${sign_with.scheme}`,
    Authorization: authorization !== null && authorization,
    Headers: names.length > 0 && html`<code>${names.join(', ')}</code>`,
  }
}

/** Whether it is delivered to, and whether that works. */
export function stateBadge({ disabled_by: by, failing }: FailingState): Html {
  if (by === 'failures') return html`<span class="badge bad">disabled after failures</span>`
  if (by === 'operator') return html`<span class="badge">disabled</span>`
  if (failing) return html`<span class="badge bad">failing</span>`
  return html`<span class="badge verified">enabled</span>`
}

type FailingState = Pick<Destination, 'disabled_by' | 'failing'>

/** A number of deliveries, which are counted up to a limit. */
export function countOrMore(value: number, countedTo: number): string {
  return `${value.toLocaleString('en')}${value < countedTo ? '' : ' or more'}`
}

/** Host and path of its address. */
export function placeText({ url }: Pick<Destination, 'url'>): string {
  const { host, pathname } = new URL(url)
  return pathname === '/' ? host : host + pathname
}

/** Which events it gets. A provider that is not `known` was removed: nothing comes from it. */
export function eventsText(
  { providers, event_types, json }: Destination,
  known: readonly string[],
): Printable {
  const gone = providers.filter((name) => !known.includes(name))
  const chosen = [
    providers.length > 0 && html`of ${listed(providers, 'or')}`,
    gone.length > 0 && html`<span class="trouble">(no provider ${listed(gone, 'or')})</span>`,
    event_types.length > 0 && html`of type ${listed(event_types, 'or')}`,
    json.length > 0 && html`with ${listed(json, 'and')}`,
  ].filter((part) => part !== false)
  return chosen.length === 0 ? 'all' : chosen.map((part) => html`${part} `)
}

function listed(names: readonly string[], word: 'and' | 'or'): readonly Html[] {
  return names.map((name, at) => {
    return html`${at > 0 && ` ${word} `}<bdi><code>${breakable(name)}</code></bdi>`
  })
}

function latency({ mean_ms: mean }: Destination): Printable {
  return mean === null ? false : `${mean < 10 ? mean.toFixed(1) : Math.round(mean)} ms on average`
}
