import * as Type from '../../../../kernel/schema.ts'
import { UnitName, type ServiceLog } from '../../watch/inventory/reads.ts'
import type { Redaction } from '../../redact.ts'
import { DEFAULT_LINES, readContainer, type Wanted } from './container-lines.ts'
import {
  Contains,
  LineCount,
  linesReply,
  Minutes,
  SEARCHED_BYTES,
  SEARCHED_LINES,
} from './lines.ts'
import { findLog } from './named.ts'
import { commandReply } from './programs.ts'
import { defineTool, refused, Text, type ToolContext, type ToolResult } from './tool.ts'

export const journalTool = defineTool({
  name: 'journal',
  description: "Reads the newest lines of the host's journal, of one systemd unit or of all.",
  tier: 2,
  effect: 'reads',
  takes: {
    unit: Type.Optional(UnitName),
    lines: LineCount,
    minutes: Minutes,
    contains: Contains,
    errors_only: Type.Optional(Type.Boolean({ default: false })),
  },
  async run(wanted, context) {
    const { journal = true } = await context.inventory.current()
    if (!journal) {
      return refused('The inventory allows the logs that it names alone: use read_log.')
    }
    return readJournal(wanted, context)
  },
})

export const readLogTool = defineTool({
  name: 'read_log',
  description:
    'Reads the newest lines of a log of a service: of a systemd unit or a container. ' +
    'list_services names the logs.',
  tier: 2,
  effect: 'reads',
  takes: {
    service: Text(200, 'Name of the service'),
    log: Type.Optional(Text(300, 'Name of the log, if the service has several')),
    lines: LineCount,
    minutes: Minutes,
    contains: Contains,
  },
  async run({ service, log, ...wanted }, context) {
    return readLog(await findLog(context, service, log), wanted, context)
  },
})

function readLog(log: ServiceLog, wanted: Wanted, context: ToolContext): Promise<ToolResult> {
  const { unit, container } = log
  if (unit !== undefined) return readJournal({ unit, ...wanted }, context)
  return readContainer(log, container ?? '', wanted, context)
}

/** What of the host's journal is wanted. */
interface JournalRequest extends Wanted {
  /** All units when absent. */
  unit?: string
  errors_only?: boolean
}

async function readJournal(
  { unit, errors_only = false, lines = DEFAULT_LINES, minutes, contains }: JournalRequest,
  context: ToolContext,
): Promise<ToolResult> {
  const { sandbox, job, redact } = context
  const argv = [
    'journalctl',
    '--no-pager',
    '--quiet',
    '--output=short-iso',
    // The newest first: of a long output the beginning is kept.
    '--reverse',
    `--lines=${contains === undefined ? lines : SEARCHED_LINES}`,
    ...(unit === undefined ? [] : [`--unit=${unit}`]),
    ...(minutes === undefined ? [] : [`--since=-${minutes}min`]),
    ...(errors_only ? ['--priority=err'] : []),
  ]
  const result = await sandbox.run(argv, job, { isOwn: true, outputBytes: SEARCHED_BYTES })
  const { code, output, isCut, problem } = result
  if (code !== 0 || problem !== null) return commandReply(result, context)
  return linesReply({
    lines: oldestFirst(output, isCut, redact),
    contains,
    most: lines,
    isCut,
  })
}

/** The lines of a journal that came in reverse; further lines of an entry are indented. */
function oldestFirst(output: string, isCut: boolean, redact: Redaction): readonly string[] {
  const entries = output.trimEnd().split(/\n(?! )/)
  // The last one that came is not whole.
  const whole = isCut ? entries.slice(0, -1) : entries
  const text = redact(whole.toReversed().join('\n'))
  return text === '' ? [] : text.split('\n')
}
