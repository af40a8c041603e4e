import { CALL_FORMS } from './call-forms.ts'
import { readReasoning } from './reasoning.ts'

/** A line on which a call of a tool may begin without a mark. */
const MAY_BE_CALL = /^\s*(?:[{[]|```)/

/**
 * Passes on the lines of a model's answer as they come, without its reasoning and the calls that it
 * writes as text. Where a call may begin the rest waits: the whole answer says what it is.
 */
export function createLiveText(pass: (line: string) => void) {
  /** A line that has not ended. */
  let open = ''
  let isReasoning = false
  let waits = false
  /** What was passed on and is not known to be reasoning. */
  let passed = ''

  function take(line: string) {
    if (waits) return
    const { text, isOpen, isAllBefore } = readReasoning(line, isReasoning)
    isReasoning = isOpen
    if (isAllBefore) passed = ''
    waits = MAY_BE_CALL.test(text) || CALL_FORMS.some(([before]) => text.search(before) >= 0)
    const isNothing = text.trim() === '' && (passed === '' || text !== line)
    if (waits || isNothing) return
    pass(text)
    passed += `${text}\n`
  }

  function reset() {
    open = ''
    isReasoning = false
    waits = false
    passed = ''
  }

  return {
    add(piece: string) {
      open += piece
      if (!piece.includes('\n')) return
      const lines = open.split('\n')
      open = lines.pop() ?? ''
      for (const line of lines) take(line)
    },
    /** Passes on what came of an answer that broke off. */
    cut() {
      take(open)
      reset()
    },
    /** Passes on what is left of an answer; `text` is all that it says. */
    end(text: string) {
      const rest = restOf(text, passed)
      if (rest !== '') pass(rest)
      reset()
    },
  }
}

/** What a text says beyond its beginning, whatever their white space. */
function restOf(text: string, beginning: string): string {
  const begun = squeeze(beginning)
  const whole = squeeze(text)
  if (begun.startsWith(whole)) return ''
  if (!whole.startsWith(begun)) return text
  let at = 0
  for (let left = begun.length; left > 0; at++) if (!/\s/.test(text.charAt(at))) left--
  return text.slice(at).trim()
}

function squeeze(text: string): string {
  return text.replaceAll(/\s/g, '')
}
