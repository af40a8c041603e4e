import * as Type from '../../../../kernel/schema.ts'
import type { Runbook } from '../../watch/runbooks/runbooks.ts'
import { Offset, pageReply } from './lines.ts'
import { defineTool, refused, Text } from './tool.ts'

export const readRunbookTool = defineTool({
  name: 'read_runbook',
  description:
    'Reads a runbook of the operators; without a name it lists all. ' +
    'A long one has pages: the last line of a page says how to get the next one.',
  tier: 1,
  effect: 'reads',
  takes: {
    name: Type.Optional(Text(64, 'Name of the runbook')),
    offset: Offset,
  },
  async run({ name, offset = 0 }, { runbooks, redact }) {
    const all = await runbooks.current()
    if (all.length === 0) return refused('There are no runbooks.')
    const runbook = all.find((one) => one.name === name)
    if (name !== undefined && runbook === undefined) {
      const names = all.map((one) => one.name).join(', ')
      return refused(`There is no runbook "${name}"; there are: ${names}.`)
    }
    // Redact the whole text: a secret may span two pages.
    const text = redact(runbook?.text ?? all.map(runbookLine).join('\n'))
    return pageReply(text, offset, (next) => {
      return `read_runbook with ${JSON.stringify({ name, offset: next })}`
    })
  },
})

/** A runbook in a list. */
export function runbookLine({ name, description }: Runbook): string {
  return `- ${name}: ${description}`
}
