import { Fault } from '../../../../kernel/fault.ts'
import { messageOf } from '../../../../kernel/log.ts'
import { redactDeep } from '../../redact.ts'
import {
  escalateTool,
  readAlertTool,
  readEventsTool,
  recallTool,
  recordEventTool,
  rememberTool,
} from './records.ts'
import { listFilesTool, readFileTool } from './files.ts'
import { httpGetTool } from './http-get.ts'
import { listServicesTool, runCheckTool } from './observe.ts'
import { runOperationTool } from '../operations/operations.ts'
import { journalTool, readLogTool } from './logs.ts'
import { runReadonlyTool } from './programs.ts'
import { readRunbookTool } from './runbooks.ts'
import { queryLogsTool, queryMetricsTool } from './sources.ts'
import { refused, type Tool, type ToolContext, type ToolResult } from './tool.ts'

const TOOLS: readonly Tool[] = [
  listServicesTool,
  runCheckTool,
  readEventsTool,
  recallTool,
  rememberTool,
  recordEventTool,
  readAlertTool,
  readRunbookTool,
  escalateTool,
  readFileTool,
  listFilesTool,
  httpGetTool,
  journalTool,
  readLogTool,
  queryMetricsTool,
  queryLogsTool,
  runReadonlyTool,
  runOperationTool,
]
/** Characters of a reply to the model: about 4,000 tokens. */
const MAX_REPLY = 16_000

/** The tools of a tier (decisions.md section 5, Tools by tier). */
export function toolsOf(tier: number): readonly Tool[] {
  return TOOLS.filter((tool) => tool.tier <= tier)
}

/**
 * Calls a tool of the session's tier. Secrets are removed from the arguments and the reply. Never
 * rejects: the reply says what went wrong. A call in a text can only read: the text may quote a log
 * or an alert in which somebody planted it (decisions.md section 7, "Text never acts").
 */
export async function callTool(
  name: string,
  args: unknown,
  context: ToolContext,
  origin: 'protocol' | 'text' = 'protocol',
): Promise<ToolResult> {
  const tools = toolsOf(context.job.session.tier)
  const tool = tools.find((one) => one.name === name)
  if (tool === undefined) {
    const known = tools.map((one) => one.name).join(', ')
    return refused(context.redact(`There is no tool "${name}". There are: ${known}.`))
  }
  if (origin === 'text' && tool.effect === 'acts') {
    return refused(
      `"${name}" is not run by a call that is written as text: only tools that read are. ` +
        'Call it as a function; if you can not, say in the summary what people have to do.',
    )
  }
  try {
    const { ok, text } = await tool.call(redactDeep(args, context.redact), context)
    const clean = context.redact(text)
    const rest = clean.length - MAX_REPLY
    return {
      ok,
      text:
        rest > 0
          ? `${clean.slice(0, MAX_REPLY).toWellFormed()}\n(${rest} characters are cut off)`
          : clean,
    }
  } catch (error) {
    if (error instanceof Fault) return refused(context.redact(error.message))
    context.log.warn('tool failed', { tool: name, error: context.redact(messageOf(error)) })
    return refused(context.redact(`It failed: ${messageOf(error)}`))
  }
}
