import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { playModel } from './model-play.ts'

/** test/long plays more. */
const SEQUENCES = { postgres: 30, embedded: 5 }

await eachBackend(t, 'random calls never disagree with the model', (t: Test, backend) =>
  playModel(t, backend, SEQUENCES[backend.name]),
)
