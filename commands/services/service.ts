import type { Database } from '../../db/client.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { SigningSecrets } from '../../services/hooks/secrets.ts'
import type { ServiceParts } from '../listeners.ts'
import type { Addresses, ServiceName } from '../addresses.ts'
import type { ConfigSource } from '../configuration.ts'

/** What a running program gives each of its services. */
export interface ServiceContext {
  readonly config: ConfigSource
  readonly secrets: SigningSecrets
  readonly version: string
  readonly log: Log
  readonly metrics: Metrics
  readonly db: Database
  /** Where each running service listens, once its listener does. */
  readonly addresses: Addresses
}

/** A service as `serve` runs it. */
export interface Service {
  readonly name: ServiceName
  /** What its listener serves; `address` is known once it listens. */
  readonly parts: (address: () => string) => ServiceParts
  /** All listeners are up: what the service does by itself may begin. */
  readonly begin?: () => void
  /** Reads again what a command may have changed in the database. */
  readonly refresh?: () => Promise<void>
  /** Drops what is known of a link: a command has changed it. */
  readonly forgetLink?: (slug: string) => void
  /** The program stops: streams end, so that running requests can finish. */
  readonly endStreams?: () => void
  readonly close: () => Promise<void>
}

export type OpenService = (context: ServiceContext) => Promise<Service>
