import type { Database } from './client.ts'

const PROBE_MS = 2_000

/** Whether the database answers; a probe that takes over two seconds counts as out of reach. */
export async function databaseAnswers(db: Database): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), PROBE_MS)
  })
  // Any failure of the probe means the same to its caller: the database can't be used.
  const probe = db.ping().then(
    () => true,
    () => false,
  )
  try {
    return await Promise.race([probe, late])
  } finally {
    clearTimeout(timer)
  }
}
