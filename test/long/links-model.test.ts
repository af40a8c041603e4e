import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { playModel } from '../links/model-play.ts'

/** The embedded engine syncs each write, and is reset by calls of the API. */
const SEQUENCES = { postgres: 1_000, embedded: 100 }

await eachBackend(t, 'many random calls never disagree with the model', (t: Test, backend) =>
  playModel(t, backend, SEQUENCES[backend.name]),
)
