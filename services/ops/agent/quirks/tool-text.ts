import { objectOf } from '../../../../kernel/json.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import type { Message } from '../runners/model-reply.ts'
import { fenced } from '../sessions/prompt.ts'

const HOW = `You have no other way to call a tool than this: write, and nothing after it,
<tool_call>{"name": "the tool", "arguments": {"an argument": "its value"}}</tool_call>
The result comes with the next message. Only tools that read can be called so:
what has to be recorded or done, say in your summary. These are the tools:`

/**
 * A conversation for an endpoint that takes no tools: they are described in the first message, and
 * calls and results are texts. `random` gives the same bytes each time, so that the endpoint finds
 * the beginning of the conversation in its cache.
 */
export function inWords(
  messages: readonly Message[],
  tools: readonly object[],
  random: RandomBytes,
): readonly Message[] {
  const list = tools.map((tool) => JSON.stringify(objectOf(tool)['function'])).join('\n')
  const texts: Message[] = []
  for (const { role, content, tool_calls: calls = [] } of messages) {
    const last = texts.at(-1)
    const result = fenced('RESULT', 'the result of your call', content, random)
    if (role === 'system') texts.push({ role, content: `${content}\n\n${HOW}\n${list}` })
    else if (role === 'assistant') {
      texts.push({ role, content: [content, ...calls.map(written)].join('\n').trim() })
    } else if (role === 'user') texts.push({ role, content })
    // Many models insist on turns: all results are one message.
    else if (last?.role === 'user') last.content += `\n\n${result}`
    else texts.push({ role: 'user', content: result })
  }
  return texts
}

function written(call: object): string {
  const { name, arguments: args } = objectOf(objectOf(call)['function'])
  return `<tool_call>{"name": ${JSON.stringify(name)}, "arguments": ${String(args)}}</tool_call>`
}
