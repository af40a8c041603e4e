import type { Clock } from '../../../kernel/time.ts'

/** One entry of a channel: its fields in order, each with its value's bytes. */
export interface QueueEntry {
  /** Unique in its channel for as long as the channel exists. */
  readonly id: string
  readonly fields: readonly (readonly [name: string, value: Buffer])[]
}

/**
 * A connection to a message broker that reads one channel: what another broker has to bring. Both
 * functions throw when the broker is out of reach or refuses; the session is then given up.
 */
export interface QueueSession {
  /**
   * The next entries, `most` at most: new ones, and those that a consumer took and died with. Waits
   * a few seconds for them; empty when there are none, and at once after `signal` is aborted.
   */
  receive(most: number, signal: AbortSignal): Promise<readonly QueueEntry[]>
  /** Tells the broker that these entries are stored: nobody is given them again. */
  acknowledge(ids: readonly string[]): Promise<void>
}

export interface SessionOptions {
  /** May hold a password: never logged or shown. */
  readonly url: string
  readonly channel: string
  /** Name of this process among the consumers of the channel. */
  readonly consumer: string
  readonly clock: Clock
}

/** Connects; the session and its connections end when `signal` is aborted, not before. */
export type OpenSession = (options: SessionOptions, signal: AbortSignal) => Promise<QueueSession>
