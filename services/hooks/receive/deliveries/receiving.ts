import type { IncomingHttpHeaders } from 'node:http'
import type { SavedEvent } from '../../../../db/hooks/receive/deliveries.ts'
import type { Registry } from '../../registry.ts'
import type { Rejections } from '../rejections.ts'
import type { SecretUses } from '../providers/secret-uses.ts'
import type { PlainAnswer } from '../schemes/handshakes.ts'
import type { FetchedKeys } from '../schemes/key-cache.ts'
import type { SigningSecrets } from '../schemes/signing-secrets.ts'
import type { BodyReader } from './body.ts'
import type { Ingest } from './ingest.ts'
import type { Subscriptions } from './subscriptions.ts'

/** What comes of a delivery before its body. */
export interface DeliveryHead {
  provider: string
  headers: IncomingHttpHeaders
  /** Name and value in turn, as received. */
  rawHeaders: readonly string[]
  method: string
  path: string
  /** The query's text, which may hold a token. */
  search: string
  client: string
  receivedAt: Date
}

/** A delivery whose body is still arriving. */
export interface Receiving {
  /** Takes the body's bytes as they arrive. */
  update: (part: Buffer) => void
  /** Verifies and stores the delivery; called once, with the whole body. */
  finish: (body: Buffer) => Promise<Received>
}

/**
 * An accepted request: `acknowledged` is a stored event with the answer of the contract. `answered`
 * has another answer: an operator chose it, or the request checks the address.
 */
export type Received =
  | { kind: 'acknowledged'; saved: SavedEvent; status: 200 | 202 | 204 }
  | { kind: 'answered'; answer: PlainAnswer }

/** What receives deliveries. */
export interface Receiver {
  registry: Registry
  ingest: Ingest
  readBody: BodyReader
  secrets: SigningSecrets
  secretUses: SecretUses
  rejections: Rejections
  fetchedKeys: FetchedKeys
  subscriptions: Subscriptions
  freshnessSeconds: () => number
  baseUrl: () => string
}
