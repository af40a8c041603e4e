import { t, type Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startServer } from '../helpers/server.ts'

await onPostgres(t, 'a doubled slash is one', async (t: Test, backend) => {
  const { hooks, links, ops } = await startServer(t, { env: await backend.env(t) })
  for (const [base, doubled, single] of [
    [hooks, '//webhooks/code_host', '/webhooks/code_host'],
    [hooks, '/webhooks//generic///none', '/webhooks/generic/none'],
    [hooks, '///log', '/log'],
    [hooks, '//none//at-all', '/none/at-all'],
    [links, '//api/v1/config', '/api/v1/config'],
    [ops, '/api//v1/sessions', '/api/v1/sessions'],
    [ops, '/api//v1//none', '/api/v1/none'],
  ] as const) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const [one, other] = await Promise.all(
        [doubled, single].map((path) => request(base + path, { method })),
      )
      t.equal(one?.status, other?.status, `${method} ${doubled}`)
      t.equal(one?.headers['allow'], other?.headers['allow'], `${method} ${doubled}: allow`)
    }
  }
})
