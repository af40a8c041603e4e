import type { Session } from '../../../../db/ops/agent/sessions.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { Call, Part, Story, Turn } from '../../../../services/ops/agent/sessions/story.ts'
import { markdown } from '../../../markdown.ts'
import { attributes, longText, nextLink, section } from '../../../parts.ts'
import { durationText, shortText } from '../../layout.ts'

/** What an ended session said and did, turn by turn. */
export function storySection({ id }: Pick<Session, 'id'>, story: Story): Html {
  const { turns, first, hasEarlier } = story
  if (turns.length === 0) {
    const none = html`<p class="muted">No output, or retention has removed it.</p>`
    return section('story-title', 'What happened', none)
  }
  return section(
    'story-title',
    'What happened',
    html`${hasEarlier && nextLink(`/sessions/${id}?before=${first}`, 'Earlier output')}
    ${turns.map((turn, at) => turnBlock(id, turn, turns.length > 1 && at === turns.length - 1))}
    ${nextLink(`/sessions/${id}?lines=1`, 'Output line by line')}`,
  )
}

function turnBlock(session: number, { title, ms, parts }: Turn, isLast: boolean): Html {
  const isUnended = isLast && parts.some((part) => part.type === 'call' || part.kind === 'text')
  const [name = '', ...spent] = (title ?? (isUnended ? 'Last turn' : '')).split(': ')
  const facts = [...spent, ms !== undefined && name !== '' && timeText(ms)]
  const known = facts.filter((fact) => fact !== false && fact !== '').join(', ')
  return html`<div class="turn">
    ${name !== '' && html`<h3>${name} <span class="muted">${known}</span></h3>`}
    ${parts.map((part) => partBlock(session, part))}
  </div>`
}

/** Calls often take less than a tenth of a second. */
function timeText(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : durationText(ms)
}

function partBlock(session: number, part: Part): Html {
  if (part.type === 'call') return callBlock(session, part)
  const { kind, text } = part
  return kind === 'text' ? markdown(text) : html`<p class="remark" data-kind="${kind}">${text}</p>`
}

/** A tool call, folded unless `isOpen`; the link loads what is left out of it. */
export function callBlock(session: number, call: Call, isOpen = false): Html {
  const { number, name, args, result, ms, isCut } = call
  const id = `call-${number}`
  return html`<details${attributes({ class: 'call', id, open: isOpen })}>
    <summary>
      <code class="name">${shortText(name, 120)}</code>
      <span class="muted">${shortText(args, 90)}</span>
      ${callState(call)} ${ms !== undefined && html`<span class="muted">${timeText(ms)}</span>`}
    </summary>
    ${name.length > 120 && labelled('Command', name)}
    ${args !== '' && labelled('Arguments', args)}
    ${result !== '' && labelled('Result', result)}
    ${isCut && (isOpen ? restOfCall(session) : wholeCallLink(session, number))}
  </details>`
}

function callState({ ok }: Call): Html {
  if (ok === undefined) return html`<span class="badge open">no result</span>`
  return ok
    ? html`<span class="badge verified">ok</span>`
    : html`<span class="badge bad">error</span>`
}

function labelled(label: string, text: string): Html {
  return html`<p class="hint">${label}</p>
    ${longText(label, text)}`
}

function wholeCallLink(session: number, number: number): Html {
  const href = `/sessions/${session}/calls/${number}`
  const htmx = { 'hx-get': href, 'hx-target': `#call-${number}`, 'hx-swap': 'outerHTML' }
  return html`<p><a${attributes({ href, ...htmx })}>Show all of it</a></p>`
}

function restOfCall(session: number): Html {
  return html`<p class="muted">
    This is its beginning. The rest is in the
    <a href="/sessions/${session}?lines=1">output line by line</a>.
  </p>`
}
