import { t } from 'tap'
import type { Test } from 'tap'
import { databaseAnswers } from '../../db/answers.ts'
import { openDatabase } from '../../db/open.ts'
import { createLog } from '../../kernel/log.ts'
import { eachBackend } from '../helpers/backends.ts'

await eachBackend(t, 'many who ask share one probe', async (t: Test, backend) => {
  const env = await backend.env(t)
  const log = createLog(
    () => undefined,
    () => new Date(),
  )
  const where = { url: env['DATABASE_URL'], dataDirectory: env['GATEHOUSE_DATA_DIR'] ?? '' }
  const { db, close } = await openDatabase(where, log)
  t.teardown(close)
  let pings = 0
  const counted = {
    ...db,
    ping() {
      pings++
      return db.ping()
    },
  }
  const answers = await Promise.all(Array.from({ length: 100 }, () => databaseAnswers(counted)))
  t.same([...new Set(answers)], [true])
  t.equal(pings, 1)
  t.equal(await databaseAnswers(counted), true)
  t.equal(pings, 2, 'whoever asks later has a probe of his own')
})
