import type { Database } from '../../db/client.ts'
import { saveDeliveries } from '../../db/hooks/receive/deliveries.ts'
import type { Ingest } from '../../services/hooks/receive/deliveries/ingest.ts'

export { storedBytes } from '../../services/hooks/receive/deliveries/ingest.ts'

/** What group commit is compared with: each delivery is inserted and committed by itself. */
export function createIngest(db: Database): Ingest {
  const running = new Set<Promise<unknown>>()
  let commits = 0
  return {
    async save(event) {
      const saving = saveDeliveries(db, [{ event, deliveries: 1, hasNewType: false }])
      running.add(saving)
      try {
        const [saved] = await saving
        commits++
        return saved
      } finally {
        running.delete(saving)
      }
    },
    async drained() {
      while (running.size > 0) await Promise.allSettled(running)
    },
    get waiting() {
      return running.size
    },
    get commits() {
      return commits
    },
  }
}
