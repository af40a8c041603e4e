import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { providerStory } from './provider-story.ts'

await onPostgres(t, 'provider commands in a process of their own', async (t: Test, backend) => {
  await providerStory(t, { env: await backend.env(t), backend, base: undefined })
})
