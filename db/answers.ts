import type { Database } from './client.ts'

const PROBE_MS = 2_000

/** The probe of each database that waits for its answer. */
const probes = new WeakMap<Database, Promise<boolean>>()

/**
 * Whether the database answers; a probe that takes over two seconds counts as out of reach. All who
 * ask meanwhile share one: anybody may ask, and many must not take the database's time.
 */
export function databaseAnswers(db: Database): Promise<boolean> {
  const present = probes.get(db) ?? probe(db).finally(() => probes.delete(db))
  probes.set(db, present)
  return present
}

async function probe(db: Database): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), PROBE_MS)
  })
  // Any failure of the ping means the same to its caller: the database can't be used.
  const answer = db.ping().then(
    () => true,
    () => false,
  )
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
