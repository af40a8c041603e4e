import type { Replay } from '../../../../db/hooks/send/replays.ts'
import { html, type Html, type Printable } from '../../../../kernel/html.ts'
import type { Comparison } from '../../../../services/hooks/log/events/compare.ts'
import { select, submit } from '../../../form.ts'
import { exactText, section, timeTag } from '../../../parts.ts'
import { differences, SAME_VALUES } from '../../log/events/compare.ts'

/** Two attempts whose answers are compared; undefined if an answer is no longer kept. */
export interface AnswersView {
  comparedAnswers?: ComparedAnswers | 'gone'
}

/** Two attempts of an event, and how their answers differ. */
interface ComparedAnswers {
  own: Replay
  other: Replay
  result: Pick<Comparison, 'by' | 'payload'>
}

/** Where the reader chooses two answers; nothing where there are not two. */
export function answersForm(event: number, replays: readonly Replay[]): Html | false {
  const [newest, second, ...others] = replays.filter(({ answer }) => answer !== null)
  if (newest === undefined || second === undefined) return false
  const options = [newest, second, ...others].map((replay) => {
    return [String(replay.id), optionText(replay)] as const
  })
  const typed = { answer: String(newest.id), other: String(second.id) }
  const form = { id: 'answers', typed }
  return html`<form class="filter" method="get" action="/log/${event}">
    ${select(form, 'answer', 'Answer', options)} ${select(form, 'other', 'Compared with', options)}
    <div class="actions">${submit('Compare answers', {})}</div>
  </form>`
}

function optionText({ id, status, at, target }: Replay): string {
  const short = target.length > MAX_TARGET ? `${target.slice(0, MAX_TARGET)}…` : target
  return `${id}: ${status ?? 'no status'}, ${exactText(at)}, ${short}`
}

/** A longer target would widen the list. */
const MAX_TARGET = 40

/** What differs between the answers. */
export function answersComparison({ comparedAnswers }: AnswersView): Html | false {
  if (comparedAnswers === undefined) return false
  if (comparedAnswers === 'gone') {
    return html`<p class="refused" role="alert">
      One of these answers is not kept any more: choose two of the list.
    </p>`
  }
  const { own, other, result } = comparedAnswers
  const names = [`Attempt ${own.id}`, `Attempt ${other.id}`] as const
  const content = html`<p>${attempt(own)}<br />${attempt(other)}</p>
    ${
      result.by === 'same'
        ? html`<p>The answers are the same.</p>`
        : differences(
            names,
            result.by === 'lines' ? 'Line' : 'Member',
            result.payload,
            SAME_VALUES,
          )
    }`
  return section('answers-title', 'Compared answers', content)
}

function attempt({ id, status, at, target }: Replay): Printable {
  return html`Attempt ${id}: ${status ?? 'no status'} from <bdi>${target}</bdi>, ${timeTag(at)}`
}
