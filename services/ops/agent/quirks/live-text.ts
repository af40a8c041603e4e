import { readReasoning, withoutEnd } from './reasoning.ts'
import { CALL_START, FENCE } from './written-calls.ts'

/**
 * Where a reply stands. `start`: nothing was passed on. `reasoning`: it goes on. `text`: its lines
 * are passed on. `waiting`: it may call a tool, so the rest waits for the whole reply.
 */
type State = 'start' | 'reasoning' | 'text' | 'waiting'

/**
 * Passes on the lines of a model's reply as they come, without the reasoning that it begins with.
 * Where a call may begin the rest waits: the whole reply says what it is.
 */
export function createLiveText(pass: (line: string) => void) {
  /** A line that has not ended. */
  let open = ''
  let state: State = 'start'
  let passed = ''

  function take(line: string) {
    if (state === 'waiting') return
    const text = state === 'text' ? line : beginning(line)
    if (state === 'reasoning' || (state === 'start' && text.trim() === '')) return
    state = mayBeCall(text) ? 'waiting' : 'text'
    if (state === 'waiting') return
    const shown = withoutEnd(text)
    pass(shown)
    passed += `${shown}\n`
  }

  /** A line before which there is nothing but reasoning. */
  function beginning(line: string): string {
    const { text, isOpen } = readReasoning(line, state === 'reasoning')
    state = isOpen ? 'reasoning' : 'start'
    return text
  }

  function reset() {
    open = ''
    state = 'start'
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
    /** Passes on what came of a reply that broke off. */
    cut() {
      take(open)
      reset()
    },
    /** Passes on what is left of a reply; `text` is all that it says. */
    end(text: string) {
      const rest = restOf(text, passed)
      if (rest !== '') pass(rest)
      reset()
    },
  }
}

/** Whether a call of a tool may begin on this line. */
function mayBeCall(line: string): boolean {
  return line.includes(CALL_START) || line.startsWith(FENCE) || /^[{[]/.test(line)
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
