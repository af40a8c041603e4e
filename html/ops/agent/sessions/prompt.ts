import { html, type Html } from '../../../../kernel/html.ts'
import { markdown } from '../../../markdown.ts'
import { shortText } from '../../layout.ts'

/** A part of a prompt: the task, or text of others in it, which is data. */
interface PromptPart {
  /** The kind of data, such as `FINDINGS`; undefined for the task. */
  kind: string | undefined
  text: string
}

/** How data is introduced in a prompt (services/ops/agent/sessions/prompt.ts, `fenced`). */
const INTRODUCTION = /Between the two lines (?<fence>(?<kind>[A-Z]{1,20})-[0-9a-f]{32}) stands /g

const TITLES: Readonly<Record<string, string>> = { ALERT: 'Alert', FINDINGS: 'Findings' }

/** Splits a prompt at the fences around its data, which are for models only. */
function promptParts(prompt: string): readonly PromptPart[] {
  const parts: PromptPart[] = []
  let at = 0
  for (const { 0: all, index, groups = {} } of prompt.matchAll(INTRODUCTION)) {
    const { fence = '', kind = '' } = groups
    if (index < at) continue
    const from = prompt.indexOf('\n', index + all.length) + 1
    const isData = from > 0 && prompt.startsWith(`${fence}\n`, from)
    const to = isData ? prompt.indexOf(`\n${fence}`, from + fence.length) : -1
    if (to < 0) continue
    addPart(parts, undefined, prompt.slice(at, index))
    addPart(parts, kind, prompt.slice(from + fence.length, to))
    at = to + 1 + fence.length
  }
  addPart(parts, undefined, prompt.slice(at))
  return parts
}

function addPart(parts: PromptPart[], kind: string | undefined, given: string): void {
  const text = given.trim()
  if (text !== '') parts.push({ kind, text })
}

/**
 * What a session is asked, in a line: why it was escalated to, which alert it looks into, or how
 * its prompt begins.
 */
export function askedLine(prompt: string | null): string {
  if (prompt === null) return 'Check of everything'
  const parts = promptParts(prompt)
  const findings = parts.findLast(({ kind }) => kind === 'FINDINGS')
  // An alert's own text says more than the task around it, which is always the same.
  const data = findings ?? parts.find(({ kind }) => kind === 'ALERT')
  const { text = '' } = data ?? parts[0] ?? {}
  const [first = ''] = data === undefined ? [text] : text.split('\n')
  return shortText(first, 120)
}

/** A prompt for people; what stands in it as data has a title. */
export function promptText(prompt: string): Html {
  const parts = promptParts(prompt).map(({ kind, text }) => {
    if (kind === undefined) return markdown(text)
    return html`<div class="quoted">
      <p class="muted">${TITLES[kind] ?? kind}</p>
      ${markdown(text)}
    </div>`
  })
  return html`${parts}`
}
