import type { JsonObject } from '../../../kernel/json.ts'
import type { LineKind } from '../sessions/output.ts'

/** What one line of an agent's stream says, whichever agent it is. */
export interface Said {
  /** What people see of it. */
  readonly shown?: readonly Shown[]
  /** Who acts in it: each time that the agent does after another, a turn begins. */
  readonly speaker?: 'agent' | 'other'
  /** What the agent said: the last message is the summary. A part goes on where the former ended. */
  readonly message?: string
  readonly part?: true
  /** US dollars that this line adds; null when the agent can't know what it costs. */
  readonly cost?: number | null
  /** How it ended, as far as is known by now. */
  readonly result?: Result
  /** Work goes on: what was said of an end before does not count. */
  readonly begins?: true
  /** Something went wrong; without a result it is why the session failed. */
  readonly problem?: string
  /** It makes no sense to go on, and this is why. */
  readonly hopeless?: string
}

export interface Shown {
  readonly kind: LineKind
  readonly text: string
}

/** The end of an agent's work, in its own words. */
export interface Result {
  readonly ok: boolean
  /** Its last message; undefined when the stream had it before. */
  readonly text?: string | undefined
  readonly problem?: string
  /** Turns as it counts them. */
  readonly turns?: number | undefined
}

/** How the lines of one agent are read; undefined for a line that it does not know. */
export type Format = (line: JsonObject) => Said | undefined

/** A value as people may read it: text as it is, anything else as JSON. */
export function shownValue(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}
