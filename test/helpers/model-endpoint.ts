import { LLMock } from '@copilotkit/aimock'
import type { ChatCompletionRequest, Fixture, FixtureResponse } from '@copilotkit/aimock'
import type { Owner } from './owner.ts'
import type { Env } from './program.ts'
import { keepSecret } from './secrets.ts'

/** What a scripted model is asked. */
export type Asked = {
  readonly request: ChatCompletionRequest
  /** How often it has answered in this session. */
  readonly step: number
  readonly tier: number
  /** What the session is for. */
  readonly prompt: string
  /** What the tools answered last, in the order of their calls. */
  readonly results: readonly string[]
}

/** A model endpoint of a test: a real server with the protocol, whose answers are scripted. */
export type ModelEndpoint = {
  /** What makes the product use it. */
  readonly env: Env
  readonly asked: readonly Asked[]
  /** Replaces the script; scheduled sessions hear that all is well. */
  answer(script: Script): void
  /** Nobody listens at its address any more. */
  stop(): Promise<void>
}

export type Script = (asked: Asked) => FixtureResponse | Promise<FixtureResponse>

/** A call of a tool. */
export type Call = readonly [name: string, args: object | string]

/** The tokens of each scripted answer that says nothing else. */
export const USAGE = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 }

/** Without this key the endpoint answers 401. */
const KEY = keepSecret('model-key', 'mk/9f+e2=key?of&the/endpoint')

/** Starts an endpoint, which ends with the test. */
export async function startModel(
  t: Owner,
  script: Script = () => says('All is well.'),
  fixture: Partial<Fixture> = {},
): Promise<ModelEndpoint> {
  const asked: Asked[] = []
  let answer = script
  const mock = await LLMock.create({ port: 0, auth: { apiKeys: [KEY] } })
  mock.addFixture({
    ...fixture,
    match: { endpoint: 'chat' },
    response: (request) => {
      const one = read(request)
      asked.push(one)
      return one.prompt.startsWith('Scheduled session') ? says('All is well.') : answer(one)
    },
  })
  const { url } = mock
  let stopped = false
  async function stop(): Promise<void> {
    if (!stopped) await mock.stop()
    stopped = true
  }
  t.teardown(stop)
  return {
    env: { OPS_MODEL_URL: `${url}/v1`, OPS_MODEL_KEY: KEY },
    asked,
    answer: (next) => void (answer = next),
    stop,
  }
}

/** An answer in words: the end of a session. */
export function says(content: string): FixtureResponse {
  return { content, usage: USAGE }
}

/** An answer that calls tools; arguments that are text are sent as they are. */
export function calls(...list: readonly Call[]): FixtureResponse {
  const toolCalls = list.map(([name, args], at) => ({
    id: `call-${at}`,
    name,
    arguments: typeof args === 'string' ? args : JSON.stringify(args),
  }))
  return { toolCalls, usage: USAGE }
}

/** Calls of tools one after the other, then words. */
export function steps(list: readonly Call[], end = 'Done.'): Script {
  return ({ step }) => {
    const call = list[step]
    return call === undefined ? says(end) : calls(call)
  }
}

/** Escalates up to a tier, and goes on there with a script. */
export function inTier(tier: number, script: Script): Script {
  const escalation: Call = ['escalate', { reason: 'as asked', findings: 'none yet' }]
  return (asked) => (asked.tier < tier ? calls(escalation) : script(asked))
}

function read(request: ChatCompletionRequest): Asked {
  const { messages } = request
  const text = (role: string): string =>
    String(messages.find((message) => message.role === role)?.content ?? '')
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  return {
    request,
    step: messages.filter(({ role }) => role === 'assistant').length,
    tier: Number(/tier (\d) of 3/.exec(text('system'))?.[1] ?? 0),
    prompt: text('user'),
    results: messages
      .slice(last + 1)
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => String(content)),
  }
}
