import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { playModel } from '../links/model.ts'

/** The embedded engine syncs each write. */
const SEQUENCES = { postgres: 1_000, embedded: 100 }

await eachBackend(t, 'many random calls never disagree with the model', (t: Test, backend) =>
  playModel(t, backend, SEQUENCES[backend.name]),
)
