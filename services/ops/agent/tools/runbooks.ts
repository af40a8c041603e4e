import * as Type from '../../../../kernel/schema.ts'
import type { Runbook } from '../../watch/runbooks/runbooks.ts'
import { defineTool, done, refused, Text } from './tool.ts'

/** Characters of a page, less than a reply may have: redaction can lengthen it. */
const MAX_PAGE = 12_000

export const readRunbookTool = defineTool({
  name: 'read_runbook',
  description:
    'Reads a runbook of the operators; without a name it lists all. ' +
    'A long one has pages: the last line of a page says how to get the next one.',
  tier: 1,
  effect: 'reads',
  takes: {
    name: Type.Optional(Text(64, 'Name of the runbook')),
    offset: Type.Optional(
      Type.Integer({
        minimum: 0,
        default: 0,
        description: 'From the last line of the page before',
      }),
    ),
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
    const next = offset + MAX_PAGE
    const page = text.slice(offset, next).toWellFormed()
    if (next >= text.length) return done(page || 'Nothing follows.')
    const call = JSON.stringify({ ...(name !== undefined && { name }), offset: next })
    return done(`${page}\n(for the next page call read_runbook with ${call})`)
  },
})

/** A runbook in a list. */
export function runbookLine({ name, description }: Runbook): string {
  return `- ${name}: ${description}`
}
