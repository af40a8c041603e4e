/** An open WebSocket connection, of either side, as far as its user may use it. */
export interface Channel {
  /** Sends a text message; dropped when the connection has ended. */
  send(text: string): void
  /**
   * Sends a binary message in pieces, none before the one in front has left; resolves when all have,
   * or when the connection has ended. Nothing else may be sent meanwhile.
   */
  sendBytes(bytes: Buffer): Promise<void>
  /** Ends the connection in order; `reason` has at most 123 bytes. Repeated calls change nothing. */
  close(code: CloseCode, reason: string): void
  /** Where messages go: text as string, binary as Buffer. Set at once, or the first ones are missed. */
  onMessage(callback: (message: string | Buffer) => void): void
  /** Resolves when the connection has ended, or never came about. */
  readonly ended: Promise<ChannelEnd>
}

/**
 * Why a side ends a connection: 1000 done, 1001 it stops, 1008 the other side breaks the protocol,
 * 1013 not now, 4409 a newer connection has taken this one's place.
 */
export type CloseCode = 1000 | 1001 | 1008 | 1013 | 4409

/**
 * How a connection ended. `closed`: by a close message. `refused`: the server answered the upgrade
 * with an ordinary response, `body` is its beginning. `lost`: broken off, or nobody was there.
 */
export type ChannelEnd =
  | { readonly kind: 'closed'; readonly code: number; readonly reason: string }
  | { readonly kind: 'refused'; readonly status: number; readonly body: string }
  | { readonly kind: 'lost'; readonly reason: string }

/** The answer to the request for a WebSocket: yes, and what is done with it. */
export interface ChannelReply {
  readonly status: 101
  /** The subprotocol that is spoken. */
  readonly protocol: string
  /** Largest message that is taken, in bytes. */
  readonly maxMessage: number
  /** Given the connection once it is open. */
  readonly open: (channel: Channel) => void
}
