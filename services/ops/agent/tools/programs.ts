import * as Type from '../../../../kernel/schema.ts'
import type { CommandResult } from '../../../../kernel/processes/run.ts'
import { withNote } from '../../watch/checks/hardening.ts'
import { redactCut } from '../../redact.ts'
import type { ReadonlyCommand } from '../../watch/inventory/inventory.ts'
import { defineTool, refused, type ToolContext, type ToolResult } from './tool.ts'

export const runReadonlyTool = defineTool({
  name: 'run_readonly',
  description:
    'Runs one of the commands that the inventory allows for looking, with further arguments. ' +
    'There is no shell: no pipes, no wildcards. It sees no other processes, ' +
    'and no network unless the inventory allows it. An empty list shows what is allowed.',
  tier: 2,
  effect: 'reads',
  takes: {
    argv: Type.Array(Type.String({ maxLength: 4_000 }), {
      maxItems: 100,
      description: 'The program and its arguments',
    }),
  },
  async run({ argv }, context) {
    const { readonly: allowed = [] } = await context.inventory.current()
    const commands = allowed.map(toCommand)
    const fitting = commands.filter((one) => one.argv.every((word, at) => argv[at] === word))
    if (fitting.length > 0) {
      const network = fitting.some((one) => one.network === true)
      const result = await context.sandbox.run(argv, context.job, { network })
      return commandReply(result, context)
    }
    if (commands.length === 0) return refused('The inventory allows no commands.')
    const list = commands.map(describeCommand).join('; ')
    return refused(`That is not allowed. These commands are, with whatever follows: ${list}.`)
  },
})

/** A command for people, with quotes where needed. */
export function commandText(argv: readonly string[]): string {
  const isPlain = (word: string) => /^[\w@%+=:,./-]+$/.test(word)
  return argv.map((word) => (isPlain(word) ? word : JSON.stringify(word))).join(' ')
}

function toCommand(entry: readonly string[] | ReadonlyCommand): ReadonlyCommand {
  return 'argv' in entry ? entry : { argv: [...entry] }
}

function describeCommand({ argv, network }: ReadonlyCommand): string {
  const text = commandText(argv)
  return network === true ? `${text} (with network)` : text
}

/** What a command has said, or why it has failed. */
export function commandReply(result: CommandResult, { redact }: ToolContext): ToolResult {
  const { code, output, isCut, problem } = result
  const text = redactCut(output, isCut, redact).trim()
  if (code === 0 && problem === null) return { ok: true, text: text || '(no output)' }
  return refused(`${problem ?? `It ended with ${code}`}\n${withNote(text)}`.trim())
}
