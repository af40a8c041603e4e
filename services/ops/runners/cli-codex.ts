import { numberOf, objectOf, stringOf, type JsonObject } from '../../../kernel/json.ts'
import { shownValue, type Format, type Said } from './cli-said.ts'

/** Lines of `codex exec --json`; it tells tokens, never what they cost. */
export const readCodex: Format = (line) => {
  switch (line['type']) {
    case 'thread.started':
      return { shown: [{ kind: 'system', text: `codex, thread ${shownValue(line['thread_id'])}` }] }
    case 'turn.started':
      return { begins: true }
    case 'turn.completed':
      return { result: { ok: true } }
    case 'turn.failed': {
      const problem = stringOf(objectOf(line['error'])['message']) ?? 'the turn failed'
      return { shown: [{ kind: 'error', text: problem }], result: { ok: false, problem } }
    }
    case 'item.started':
    case 'item.completed':
      return 'item' in line
        ? readItem(objectOf(line['item']), line['type'] === 'item.completed')
        : undefined
    case 'error': {
      // Also while it connects again, so it is not the end yet.
      const problem = stringOf(line['message'])
      if (problem === undefined) return undefined
      return { shown: [{ kind: 'error', text: problem }], problem }
    }
  }
  return undefined
}

function readItem(item: JsonObject, completed: boolean): Said | undefined {
  const text = stringOf(item['text']) ?? ''
  switch (item['type']) {
    case 'agent_message':
      if (!completed) return {}
      return { shown: [{ kind: 'text', text }], speaker: 'agent', message: text }
    case 'reasoning':
      return completed ? { shown: [{ kind: 'text', text }], speaker: 'agent' } : {}
    case 'error':
      return { shown: [{ kind: 'error', text: shownValue(item['message']) }] }
    case 'command_execution': {
      if (!completed) {
        const command = shownValue(item['command'])
        return { shown: [{ kind: 'tool', text: command }], speaker: 'agent' }
      }
      const kind = numberOf(item['exit_code']) === 0 ? 'result' : 'error'
      const output = shownValue(item['aggregated_output'])
      return { shown: [{ kind, text: output }], speaker: 'other' }
    }
  }
  // A change of a file, a search, a tool of another server: shown as it is.
  return { shown: [{ kind: completed ? 'result' : 'tool', text: shownValue(item) }] }
}
