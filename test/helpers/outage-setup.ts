import type { Test } from 'tap'
import { createSender } from './deliveries.ts'
import type { Sender } from './deliveries.ts'
import type { Owner } from './owner.ts'
import type { Cluster } from './postgres.ts'
import type { Env } from './program.ts'
import { startServer } from './server.ts'
import type { TestServer } from './server.ts'

/** A hooks service on a database of its own, and a sender that it knows. */
export type OnCluster = {
  readonly env: Env & { readonly DATABASE_URL: string }
  readonly sender: Sender
  readonly server: TestServer
  readonly base: string
}

/** Starts both on a cluster that the test may stop, crash and freeze. */
export async function startOn(t: Owner, cluster: Cluster): Promise<OnCluster> {
  const sender = createSender()
  const env = { ...sender.env, DATABASE_URL: await cluster.createDatabase() }
  const server = await startServer(t, { services: ['hooks'], env })
  return { env, sender, server, base: server.hooks }
}

/** The log may say that the database was away, and nothing worse. */
export function noFailureIn(t: Test, server: TestServer): void {
  const bad = /handler failed|unhandled|UnhandledPromise|TypeError|"level":"error"/i
  t.same(
    server.logs().filter((line) => bad.test(line)),
    [],
    'no failure in the log',
  )
}
