import { objectOf, stringOf } from '../../../kernel/json.ts'
import { shownValue, type Format } from './cli-said.ts'

/** Lines of `gemini -o stream-json`; it tells tokens, never what they cost. */
export const readGemini: Format = (line) => {
  switch (line['type']) {
    case 'init':
      return { shown: [{ kind: 'system', text: `gemini, model ${shownValue(line['model'])}` }] }
    case 'message': {
      const text = stringOf(line['content'])
      if (text === undefined) return undefined
      // The prompt comes back: people see it with the session.
      if (line['role'] !== 'assistant') return { speaker: 'other' }
      const part = line['delta'] === true && { part: true as const }
      return { shown: [{ kind: 'text', text }], speaker: 'agent', message: text, ...part }
    }
    case 'tool_use': {
      if (!('tool_name' in line)) return undefined
      const text = `${shownValue(line['tool_name'])} ${shownValue(line['parameters'])}`
      return { shown: [{ kind: 'tool', text }], speaker: 'agent' }
    }
    case 'tool_result': {
      if (!('tool_id' in line)) return undefined
      const failed = line['status'] !== 'success'
      const text = stringOf(line['output']) ?? stringOf(objectOf(line['error'])['message']) ?? ''
      return { shown: [{ kind: failed ? 'error' : 'result', text }], speaker: 'other' }
    }
    case 'error': {
      const problem = stringOf(line['message'])
      if (problem === undefined) return undefined
      return { shown: [{ kind: 'error', text: problem }], problem }
    }
    case 'result': {
      if (!('status' in line) || 'subtype' in line) return undefined
      if (line['status'] === 'success') return { result: { ok: true } }
      const problem = stringOf(objectOf(line['error'])['message']) ?? 'the agent failed'
      return { shown: [{ kind: 'error', text: problem }], result: { ok: false, problem } }
    }
  }
  return undefined
}
