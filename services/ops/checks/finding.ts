import type { Redaction } from '../redact.ts'

/** What a check found, in one line for people. */
export interface Finding {
  readonly ok: boolean
  readonly message: string
}

/** What a check runs with. */
export interface CheckContext {
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** Of the session, for processes. */
  readonly marker: string | undefined
  /** What programs and errors say is quoted: it holds no secret then. */
  readonly redact: Redaction
}
