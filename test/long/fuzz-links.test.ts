import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { extent } from '../helpers/program.ts'
import { fuzz } from './fuzz/fuzz.ts'
import { linksToFuzz } from './fuzz/links.ts'

// Random requests to every route of the links service: see fuzz/fuzz.ts.

const RUNS = extent({
  short: { postgres: { plain: 1, sequences: 80 }, embedded: { plain: 1, sequences: 15 } },
  long: { postgres: { plain: 10, sequences: 2_500 }, embedded: { plain: 3, sequences: 300 } },
})

await eachBackend(t, 'links: no request breaks a promise', async (t: Test, backend) => {
  const { server, profile } = await linksToFuzz(t, backend)
  await fuzz(t, server, profile, RUNS[backend.name])
})
