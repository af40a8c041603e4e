import * as Type from '../../../../kernel/schema.ts'
import type { Static, TObject, TProperties } from '../../../../kernel/schema.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import type { Database, Executor } from '../../../../db/client.ts'
import type { Clock } from '../../../../kernel/time.ts'
import type { Log } from '../../../../kernel/log.ts'
import type { InventorySource } from '../../watch/inventory/inventory.ts'
import type { Redaction } from '../../redact.ts'
import type { RunbookSource } from '../../watch/runbooks/runbooks.ts'
import type { Job } from '../runners/runner.ts'
import { fits } from '../../../../kernel/validate.ts'
import { argumentProblems } from './argument-problems.ts'
import { meantArguments } from './arguments.ts'
import type { Sandbox } from './sandbox.ts'

/** What tools of all sessions work with. */
export interface ToolOptions {
  db: Database
  clock: Clock
  log: Log
  inventory: InventorySource
  runbooks: RunbookSource
  redact: Redaction
  sandbox: Sandbox
  /** Whether operations are only recorded: the setting as saved at this moment. */
  dryRun: (tx: Executor) => Promise<boolean>
}

/** What a call of a tool works with. */
export interface ToolContext extends ToolOptions {
  job: Pick<Job, 'session' | 'holder' | 'marker' | 'config' | 'signal' | 'escalate'>
}

/** A reply to the model. If it is not `ok`, the model may correct its call. */
export interface ToolResult {
  ok: boolean
  text: string
}

/** Something that the agent may do. This server does it, without a shell. */
export interface Tool {
  name: string
  description: string
  /** The lowest tier that has it. */
  tier: number
  /** `acts`: it records, escalates or runs something, so a call in a text is not enough. */
  effect: 'reads' | 'acts'
  /** Of the arguments, as the model gets it. */
  schema: TObject
  /**
   * Validates the arguments and runs. Rejects with a Fault for the model, for a bug, or if the
   * database is unavailable.
   */
  call: (args: unknown, context: ToolContext) => Promise<ToolResult>
}

/** Declares a tool by the arguments that it takes; it takes no others. */
export function defineTool<P extends TProperties>({
  run,
  takes,
  ...shown
}: Pick<Tool, 'name' | 'description' | 'tier' | 'effect'> & {
  takes: P
  run: (args: Static<TObject<P>>, context: ToolContext) => Promise<ToolResult>
}): Tool {
  const schema = Type.Object(takes, { additionalProperties: false })
  return {
    ...shown,
    schema,
    async call(given, context) {
      const args = meantArguments(schema, given)
      if (fits(schema, args)) return run(args as Static<TObject<P>>, context)
      throw badRequest(argumentProblems(shown.name, schema, args).join('\n'))
    },
  }
}

/** A text that is not empty. */
export function Text(maxLength: number, description: string) {
  return Type.String({ minLength: 1, maxLength, description })
}

export function done(text: string): ToolResult {
  return { ok: true, text }
}

export function refused(text: string): ToolResult {
  return { ok: false, text }
}
