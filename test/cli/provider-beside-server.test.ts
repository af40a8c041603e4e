import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { startServer } from '../helpers/server.ts'
import { providerStory } from './provider-story.ts'

await eachBackend(t, 'provider commands beside a running server', async (t: Test, backend) => {
  const env = await backend.env(t)
  const server = await startServer(t, { services: ['hooks'], env })
  await providerStory(t, { env, backend, base: server.hooks })
})
