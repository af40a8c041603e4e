import type { Env } from './program.ts'

/** Environment variable by which test/run.ts hands the address of its cluster to every test file. */
export const SHARED_POSTGRES = 'GATEHOUSE_TEST_POSTGRES_URL'

/** The same of the folder of its socket: over TCP, a statement's way to the server costs twice as much. */
export const SHARED_SOCKET = 'GATEHOUSE_TEST_POSTGRES_SOCKET'

export function sharedUrl() {
  return process.env[SHARED_POSTGRES] || undefined
}

/** The socket of an address, if that is of the run's cluster. */
export function socketOf(url: string) {
  const [shared, folder] = [sharedUrl(), process.env[SHARED_SOCKET]]
  if (shared === undefined || folder === undefined) return undefined
  const { host, port } = new URL(shared)
  return url.includes(`@${host}/`) ? `${folder}/.s.PGSQL.${port}` : undefined
}

/** The same variables: they have the run's cluster by its socket. */
export function overSocket(env: Env): Env {
  const { DATABASE_URL: url = '' } = env
  const folder = socketOf(url) && process.env[SHARED_SOCKET]
  if (folder === undefined) return env
  return { ...env, DATABASE_URL: url.replace(/@[^:/]*:/, `@${encodeURIComponent(folder)}:`) }
}
