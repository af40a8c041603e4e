import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { isObject, type Members } from '../../kernel/mcp/json-rpc.ts'
import { BadRequest, type Call, type InputRequired, type Tool } from '../../kernel/mcp/server.ts'
import { fixture, text } from './conformance-tools.ts'

const KEY = randomBytes(32)

/** A question to the user, with one member of the given type in its answer. */
export function elicit(message: string, member: string, type = 'string'): { method: string } {
  const requestedSchema = {
    type: 'object',
    properties: { [member]: { type } },
    required: [member],
  }
  return { method: 'elicitation/create', params: { message, requestedSchema } } as {
    method: string
  }
}

const sample = {
  method: 'sampling/createMessage',
  params: {
    messages: [{ role: 'user', content: { type: 'text', text: 'What is the capital of France?' } }],
    maxTokens: 50,
  },
}
const roots = { method: 'roots/list', params: {} }

/** What the user answered under a key; undefined when it is no accepted form. */
export function answered(call: Call, key: string): Members | undefined {
  const response = call.inputResponses[key]
  return isObject(response) && isObject(response['content']) ? response['content'] : undefined
}

/** State that only this process can have made. */
function seal(state: Members): string {
  const data = Buffer.from(JSON.stringify(state)).toString('base64url')
  return `${data}.${createHmac('sha256', KEY).update(data).digest('base64url')}`
}

function unseal(sealed: string | undefined): Members | undefined {
  if (sealed === undefined) return undefined
  const [data = '', mac = ''] = sealed.split('.')
  const expected = createHmac('sha256', KEY).update(data).digest()
  const given = Buffer.from(mac, 'base64url')
  const whole = sealed === `${data}.${given.toString('base64url')}`
  if (!whole || given.length !== expected.length || !timingSafeEqual(given, expected))
    throw new BadRequest('requestState is not what was given out.')
  return JSON.parse(Buffer.from(data, 'base64url').toString('utf8')) as Members
}

const askConfirm = (): InputRequired => ({
  inputRequests: { confirm: elicit('Please confirm', 'ok', 'boolean') },
  requestState: seal({ kind: 'confirm' }),
})

/** Tools that need something of the client before they can answer. */
export const inputTools: readonly Tool[] = [
  fixture('test_missing_capability', 'Needs sampling', () => ({
    inputRequests: { sample },
  })),
  fixture('test_input_required_result_elicitation', 'Asks for a name', (call) => {
    const name = answered(call, 'user_name')?.['name']
    if (typeof name === 'string') return text(`Hello, ${name}!`)
    return { inputRequests: { user_name: elicit('What is your name?', 'name') } }
  }),
  fixture('test_input_required_result_sampling', 'Asks the model', (call) =>
    isObject(call.inputResponses['capital_question'])
      ? text('Sampling result: received')
      : { inputRequests: { capital_question: sample } },
  ),
  fixture('test_input_required_result_list_roots', 'Asks for roots', (call) =>
    isObject(call.inputResponses['client_roots'])
      ? text('Roots received')
      : { inputRequests: { client_roots: roots } },
  ),
  fixture('test_input_required_result_request_state', 'Keeps state with the client', (call) => {
    const state = unseal(call.requestState)
    return state !== undefined && answered(call, 'confirm') !== undefined
      ? text('state-ok: requestState validated')
      : askConfirm()
  }),
  fixture('test_input_required_result_tampered_state', 'Refuses forged state', (call) => {
    const state = unseal(call.requestState)
    return state !== undefined ? text('integrity-ok: state verified') : askConfirm()
  }),
  fixture('test_input_required_result_multiple_inputs', 'Asks for three things', (call) => {
    const keys = ['user_name', 'greeting', 'client_roots']
    if (unseal(call.requestState) !== undefined && keys.every((key) => key in call.inputResponses))
      return text('All three received')
    return {
      inputRequests: {
        user_name: elicit('What is your name?', 'name'),
        greeting: sample,
        client_roots: roots,
      },
      requestState: seal({ kind: 'multiple' }),
    }
  }),
  fixture('test_input_required_result_multi_round', 'Asks twice', (call) => {
    const round = unseal(call.requestState)?.['round']
    if (round === 2 && answered(call, 'step2') !== undefined) return text('Both rounds are done')
    if (round === 1 && answered(call, 'step1') !== undefined) {
      return {
        inputRequests: { step2: elicit('Step 2: What is your favorite color?', 'color') },
        requestState: seal({ round: 2 }),
      }
    }
    return {
      inputRequests: { step1: elicit('Step 1: What is your name?', 'name') },
      requestState: seal({ round: 1 }),
    }
  }),
  fixture('test_input_required_result_capabilities', 'Asks what the client can', (call) => ({
    inputRequests: {
      ...(isObject(call.capabilities['elicitation']) && { value: elicit('Value?', 'value') }),
      ...(isObject(call.capabilities['sampling']) && { sample }),
    },
  })),
]
