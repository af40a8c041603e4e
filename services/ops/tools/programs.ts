import Type from 'typebox'
import { OUTPUT_BYTES, type CommandResult } from '../processes/run.ts'
import { withNote } from '../hardening.ts'
import { redactCut } from '../redact.ts'
import type { ReadonlyCommand } from '../inventory.ts'
import { defineTool, refused, type ToolContext, type ToolResult } from './tool.ts'

export const journalTool = defineTool({
  name: 'journal',
  description: "Reads the newest lines of the host's journal, of one systemd unit or of all.",
  tier: 2,
  takes: {
    unit: Type.Optional(
      Type.String({ pattern: String.raw`^[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]*$` }),
    ),
    lines: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
    minutes: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100_000, description: 'How far back' }),
    ),
    errors_only: Type.Optional(Type.Boolean({ default: false })),
  },
  async run({ unit, lines = 100, minutes, errors_only = false }, context) {
    const argv = [
      ...['journalctl', '--no-pager', '--quiet', '--output=short-iso', `--lines=${lines}`],
      ...(unit === undefined ? [] : [`--unit=${unit}`]),
      ...(minutes === undefined ? [] : [`--since=-${minutes}min`]),
      ...(errors_only ? ['--priority=err'] : []),
    ]
    return commandReply(await context.sandbox.runOwn(argv, context.job), context)
  },
})

export const runReadonlyTool = defineTool({
  name: 'run_readonly',
  description:
    'Runs one of the commands that the inventory allows for looking, with further arguments. There is no shell: no pipes, no wildcards. It sees no other processes, and no network unless the inventory allows it. An empty list shows what is allowed.',
  tier: 2,
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
      return commandReply(await context.sandbox.runChosen(argv, network, context.job), context)
    }
    if (commands.length === 0) return refused('The inventory allows no commands.')
    const list = commands.map(describeCommand).join('; ')
    return refused(`That is not allowed. These commands are, with whatever follows: ${list}.`)
  },
})

/** A command for people, with quotes where needed. */
export function commandText(argv: readonly string[]): string {
  return argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word))).join(' ')
}

function toCommand(entry: readonly string[] | ReadonlyCommand): ReadonlyCommand {
  return 'argv' in entry ? entry : { argv: [...entry] }
}

function describeCommand({ argv, network = false }: ReadonlyCommand): string {
  return `${commandText(argv)}${network ? ' (with network)' : ''}`
}

function commandReply(
  { code, output, problem }: CommandResult,
  { redact }: Pick<ToolContext, 'redact'>,
): ToolResult {
  const cut = Buffer.byteLength(output) >= OUTPUT_BYTES || problem !== null
  const text = redactCut(output, cut, redact).trim()
  if (code === 0 && problem === null) return { ok: true, text: text || '(no output)' }
  return refused(`${problem ?? `It ended with ${code}`}\n${withNote(text)}`.trim())
}
