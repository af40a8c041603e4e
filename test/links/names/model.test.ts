import { t } from 'tap'
import { onPostgres } from '../../helpers/backends.ts'
import { playModel } from './model.ts'

/** test/long plays more, and on both engines. */
await onPostgres(t, 'random calls never disagree with the model', (t, backend) =>
  playModel(t, backend, 3),
)
