/** How long the clients of a listener may take, in milliseconds. */
export interface HttpTimes {
  /** From the connection, or the first byte of a further request, to the end of the head. */
  readonly head: number
  /** To the end of the body. */
  readonly request: number
  /** Between two requests. */
  readonly idle: number
  /** Without taking anything of an answer that waits for it. */
  readonly stalled: number
  /** How often the first two are looked at. */
  readonly look: number
}

/** What docs/operations.md says under "Slow clients". */
export const HTTP_TIMES: HttpTimes = {
  head: 20_000,
  request: 120_000,
  idle: 65_000,
  stalled: 60_000,
  look: 2_000,
}
