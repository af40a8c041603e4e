import type { FailingDestination } from '../../db/hooks/send/destinations.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { AlarmKind } from '../../services/hooks/receive/alarms.ts'
import type { StatusMessage } from '../../services/hooks/log/status.ts'
import { breakable, countText, disclosed, timeTag } from '../parts.ts'
import { logUrl } from './log-url.ts'
import { lastAnswer } from './layout.ts'

// What needs somebody, at the top of the dashboard: in one line, then each with the way to it.

/** Providers whose alarms fire, and destinations that fail. */
export interface ProblemsView {
  status: StatusMessage
  failing: readonly FailingDestination[]
}

/** A kind of problem: what is counted in the headline, and what the line of each one says. */
interface Problems {
  noun: string
  state: string
  rows: readonly Html[]
}

/** `2 providers silent, 1 destination failing`, or that nothing needs anybody. */
export function headline(view: ProblemsView): Html {
  const found = problemsIn(view)
  const text = found.map(({ noun, state, rows }) => `${countText(rows.length, noun)} ${state}`)
  const isWell = found.length === 0
  return html`<p class="headline ${!isWell && 'trouble'}" role="status">
    ${isWell ? 'All is well' : text.join(', ')}
  </p>`
}

/** Lines of problems that stand above everything else; more of them open. */
const MAX_PROBLEMS = 8

/**
 * Each problem in a line, destinations first: what they miss is lost in the end, and a provider may
 * have nothing to send. Nothing while all is well.
 */
export function problemList(view: ProblemsView): Html | false {
  const rows = problemsIn(view)
    .toReversed()
    .flatMap((found) => found.rows)
  if (rows.length === 0) return false
  const [shown, more] = [rows.slice(0, MAX_PROBLEMS), rows.slice(MAX_PROBLEMS)]
  return html`<div class="panel problems">
    <ul class="lines">
      ${shown}
    </ul>
    ${
      more.length > 0 &&
      disclosed(
        `${more.length} more`,
        html`<ul class="lines">
          ${more}
        </ul>`,
        { id: 'more-problems' },
      )
    }
  </div>`
}

function problemsIn({ status, failing }: ProblemsView): readonly Problems[] {
  const firing = (kind: AlarmKind) =>
    status.providers.filter(({ alarms }) => alarms.includes(kind))
  const silent = firing('silent').map(({ name, last_event_at: last }) => {
    const since = last === null ? 'none came yet' : html`the last one came ${timeTag(last)}`
    const text = html`no event for longer than expected; ${since}`
    return problem(logUrl({ provider: name }), name, text)
  })
  const refused = firing('burst').map(({ name }) => {
    const text = 'many deliveries with a wrong signature or token within five minutes'
    return problem(logUrl({ provider: name, rejected: '1' }), name, text)
  })
  const destinations = failing.map((destination) => {
    const { name, disabled_by } = destination
    const state = disabled_by === null ? 'failing' : 'disabled after failures'
    const text = html`${state}; last answer: ${lastAnswer(destination, 'none')}`
    return problem(`/destinations/${name}`, name, text)
  })
  const kinds = [
    { noun: 'provider', state: 'silent', rows: silent },
    { noun: 'provider', state: 'with many refused deliveries', rows: refused },
    { noun: 'destination', state: 'failing', rows: destinations },
  ]
  return kinds.filter(({ rows }) => rows.length > 0)
}

function problem(href: string, name: string, text: Printable): Html {
  return html`<li><a href="${href}">${breakable(name)}</a>: ${text}</li>`
}
