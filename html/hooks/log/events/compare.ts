import { html, type Html, type Printable } from '../../../../kernel/html.ts'
import type { Comparison, Difference } from '../../../../services/hooks/log/events/compare.ts'
import { field, submit } from '../../../form.ts'
import { breakable, namedRows, section } from '../../../parts.ts'

/** What the page of an event shows of a comparison with another one. */
export interface CompareView {
  event: { id: number; provider: string }
  /** The id that was typed, and the result; undefined where no event has this id. */
  compared?: { typed: string; result: Comparison | undefined }
}

/** Where the reader names the event to compare with. */
export function compareForm({ event, compared }: CompareView): Html {
  const form = { id: 'compare', typed: { compare: compared?.typed ?? '' } }
  const id = {
    required: true,
    inputmode: 'numeric',
    pattern: '\\d{1,15}',
    title: 'The id of an event',
    width: 'half',
  } as const
  const content = html`<form class="filter" method="get" action="/log/${event.id}">
    ${field(form, 'compare', 'Event id', id)}
    <div class="actions">${submit('Compare', {})}</div>
  </form>`
  return section('compare-title', 'Compare with another event', content)
}

/** What differs; nothing where no event was named. */
export function comparison({ event, compared }: CompareView): Html | false {
  if (compared === undefined) return false
  const { typed, result } = compared
  if (result === undefined) {
    return html`<p class="refused" role="alert">
      There is no event ${typed} to compare with; retention may have removed it.
    </p>`
  }
  const names = [`Event ${event.id}`, `Event ${result.other}`] as const
  const content = html`${payloadDifferences(event.id, result, names)}
  ${differences(names, 'Header', result.headers, 'The headers are the same.')}`
  const title = html`Compared with <a href="/log/${result.other}">event ${result.other}</a>`
  return section('compared-title', title, content)
}

/** The names of both columns. */
type Names = readonly [own: string, other: string]

/** Said of two texts without a difference in what is listed. */
export const SAME_VALUES = 'The values are the same; white space or the order of members differs.'

function payloadDifferences(own: number, { other, by, payload }: Comparison, names: Names) {
  if (by === 'same') return html`<p>The payloads are the same, byte for byte.</p>`
  if (by === 'bytes') return html`<p>The payloads differ. They are not text.</p>`
  if (by === 'too long') {
    return html`<p>
      The payloads are too large to compare member by member: see both as they were sent,
      ${rawLink(own)} and ${rawLink(other)}.
    </p>`
  }
  return differences(names, by === 'lines' ? 'Line' : 'Member', payload, SAME_VALUES)
}

function rawLink(id: number): Html {
  return html`<a href="/log/${id}?raw=1">event ${id}</a>`
}

/** What differs between two texts. */
export function differences(
  names: Names,
  what: string,
  { listed, more }: Comparison['payload'],
  whenNone: string,
): Html {
  if (listed.length === 0) return html`<p>${whenNone}</p>`
  const rows = listed.map((difference) => row(difference, names))
  return html`${namedRows(`${what}s that differ`, [what, ...names], rows, 'pairs compared')}
  ${more > 0 && html`<p class="note">${more} more differences are not listed.</p>`}`
}

function row({ at, own, other }: Difference, names: Names): readonly Printable[] {
  const value = (text: string | null, name: string): Html => {
    const label = html`<span class="narrow-only muted">${name}: </span>`
    return html`${label}${text ?? html`<span class="muted">missing</span>`}`
  }
  return [breakable(at), value(own, names[0]), value(other, names[1])]
}
