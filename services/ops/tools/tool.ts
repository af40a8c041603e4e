import Type, { type Static, type TObject, type TProperties } from 'typebox'
import { Fault } from '../../../kernel/fault.ts'
import { firstMismatch, fits } from '../../../kernel/validate.ts'
import type { Database, Executor } from '../../../db/client.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { Log } from '../../../kernel/log.ts'
import type { InventorySource } from '../inventory.ts'
import type { Redaction } from '../redact.ts'
import type { Job } from '../runners/runner.ts'
import type { Sandbox } from './sandbox.ts'

/** What tools of all sessions work with. */
export interface ToolOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly inventory: InventorySource
  readonly redact: Redaction
  readonly sandbox: Sandbox
  /** Whether operations are only recorded: the setting as saved at this moment. */
  readonly dryRun: (tx: Executor) => Promise<boolean>
}

/** What a call of a tool works with. */
export interface ToolContext extends ToolOptions {
  readonly job: Pick<Job, 'session' | 'marker' | 'config' | 'signal' | 'escalate'>
}

/** A reply to the model. If it is not `ok`, the model may correct its call. */
export interface ToolResult {
  readonly ok: boolean
  readonly text: string
}

/** Something that the agent may do. This server does it, without a shell. */
export interface Tool {
  readonly name: string
  readonly description: string
  /** The lowest tier that has it. */
  readonly tier: number
  /** Of the arguments, as the model gets it. */
  readonly schema: TObject
  /**
   * Validates the arguments and runs. Rejects only for a bug, or if the database is unavailable.
   */
  readonly call: (args: unknown, context: ToolContext) => Promise<ToolResult>
}

/** Declares a tool by the arguments that it takes; it takes no others. */
export function defineTool<P extends TProperties>({
  run,
  takes,
  ...shown
}: Pick<Tool, 'name' | 'description' | 'tier'> & {
  readonly takes: P
  readonly run: (args: Static<TObject<P>>, context: ToolContext) => Promise<ToolResult>
}): Tool {
  const schema = Type.Object(takes, { additionalProperties: false })
  return {
    ...shown,
    schema,
    async call(args, context) {
      if (!fits(schema, args)) return refused(firstMismatch(schema, args, 'the arguments'))
      try {
        return await run(args as Static<TObject<P>>, context)
      } catch (error) {
        if (error instanceof Fault) return refused(error.message)
        throw error
      }
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
