import { numberOf, objectOf, stringOf, type JsonObject } from '../../../kernel/json.ts'
import { shownValue, type Format } from './cli-said.ts'

/** Lines of `opencode run --format json`. There is no last line: a step that calls no tool is the last one. */
export const readOpencode: Format = (line) => {
  if (!('sessionID' in line)) return undefined
  const part = objectOf(line['part'])
  switch (line['type']) {
    case 'step_start':
      return { speaker: 'agent', begins: true }
    case 'text': {
      const text = shownValue(part['text'])
      return { shown: [{ kind: 'text', text }], message: text }
    }
    case 'reasoning':
      return { shown: [{ kind: 'text', text: shownValue(part['text']) }] }
    case 'tool_use':
      return readTool(part)
    case 'step_finish':
      return {
        speaker: 'other',
        cost: costOf(part),
        ...(part['reason'] !== 'tool-calls' && { result: endOf(part['reason']) }),
      }
    case 'error': {
      const error = objectOf(line['error'])
      const message = stringOf(objectOf(error['data'])['message']) ?? stringOf(error['message'])
      const problem = message ?? stringOf(error['name']) ?? 'the agent failed'
      return { shown: [{ kind: 'error', text: problem }], result: { ok: false, problem } }
    }
  }
  return undefined
}

function readTool(part: JsonObject): ReturnType<Format> {
  const { status, input, output, error } = objectOf(part['state'])
  const call = { kind: 'tool', text: `${shownValue(part['tool'])} ${shownValue(input)}` } as const
  if (status === 'error') return { shown: [call, { kind: 'error', text: shownValue(error) }] }
  return { shown: [call, { kind: 'result', text: shownValue(output) }] }
}

function endOf(reason: unknown): { ok: boolean; problem?: string } {
  if (reason === 'stop') return { ok: true }
  return { ok: false, problem: `the model's answer ended with ${shownValue(reason)}` }
}

/** A step that used tokens and cost nothing is one of a model without a price. */
function costOf(part: JsonObject): number | null {
  const cost = numberOf(part['cost'])
  if (cost === undefined) return null
  return cost === 0 && (numberOf(objectOf(part['tokens'])['total']) ?? 0) > 0 ? null : cost
}
