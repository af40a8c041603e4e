import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import type { CliResult } from '../helpers/cli.ts'
import { modern } from '../helpers/mcp.ts'
import type { Env } from '../helpers/program.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

const run = (env: Env, ...args: readonly string[]): Promise<CliResult> =>
  runCli(['endpoint', ...args], { env, secretShown: args[0] === 'add' })

/** The token on the last line of stdout, alone. */
function tokenOf(t: Test, { code, stdout, stderr }: CliResult): string {
  t.equal(code, 0)
  t.match(stdout, /^[\w-]{43}\n$/, 'the token alone')
  const token = keepSecret('endpoint-token', stdout.trim())
  t.notMatch(stderr, token, 'nothing that is said about it shows it')
  return token
}

const address = { HOOKS_BASE_URL: 'https://hooks.example.com' }

t.test('endpoint commands in a process of their own', async (t) => {
  const [, postgres] = backends
  const env = { ...(await postgres.env(t)), ...address }
  t.match(await run(env, 'list', '--json'), { code: 0, stdout: '[]\n' })

  const added = await run(env, 'add', 'desk', '--allow', 'replay')
  tokenOf(t, added)
  t.match(added.stderr, /desk created/)
  t.same(JSON.parse(added.stderr.slice(added.stderr.indexOf('{'))), {
    mcpServers: {
      'gatehouse-desk': {
        type: 'http',
        url: 'https://hooks.example.com/mcp/desk',
        headers: { Authorization: 'Bearer TOKEN' },
      },
    },
  })
  const listening = { ...env, HOOKS_BASE_URL: '', HOOKS_ADDR: '[::1]:8080' }
  const agent = await run(listening, 'add', 'agent')
  tokenOf(t, agent)
  t.match(agent.stderr, '"url": "http://[::1]:8080/mcp/agent"')
  t.match(await run(env, 'add', 'agent'), { code: 1, stdout: '', stderr: /"agent" already/ })
  t.match(await run(env, 'add', 'Agent'), { code: 1, stdout: '', stderr: /1 to 64 of a-z/ })

  const listed = await run(env, 'list', '--json')
  t.match(JSON.parse(listed.stdout), [
    { name: 'agent', may_replay: false, created_at: /Z$/, last_used_at: null },
    { name: 'desk', may_replay: true, created_at: /Z$/, last_used_at: null },
  ])
  const table = (await run(env, 'list')).stdout
  t.match(table, /^NAME +MAY +CREATED +LAST USED\nagent +read +.*never\ndesk +read,replay +/)

  t.match(await run(env, 'revoke', 'desk'), { code: 0, stdout: '', stderr: /desk is revoked/ })
  t.match(await run(env, 'revoke', 'desk'), { code: 1, stdout: '', stderr: /no endpoint "desk"/ })

  for (const HOOKS_ADDR of ['unix:/tmp/none.sock', 'fd:hooks', '127.0.0.1:0']) {
    const hidden = await run({ ...listening, HOOKS_ADDR }, 'add', 'desk')
    tokenOf(t, hidden)
    t.match(hidden.stderr, '"url": "http://HOST/mcp/desk"', HOOKS_ADDR)
    t.match(hidden.stderr, /\nHOST stands for .*HOOKS_BASE_URL/, HOOKS_ADDR)
    t.match(await run(env, 'revoke', 'desk'), { code: 0 })
  }
})

await onPostgres(t, 'endpoint commands beside a running server', async (t: Test, backend) => {
  const env = await backend.env(t)
  const { hooks: base } = await startServer(t, { services: ['hooks'], env })
  const made = await run(env, 'add', 'agent')
  const token = tokenOf(t, made)
  // Which port it is that stands as 0 in the configuration, the server alone knows.
  if (backend.name === 'embedded') t.match(made.stderr, `"url": "${base}/mcp/agent"`)
  const endpoint = { url: `${base}/mcp/agent`, token }
  const status = async (): Promise<number> => (await modern(endpoint, 'tools/list')).status
  await until(async () => (await status()) === 200, 'the server to know the token')
  t.match(await run(env, 'list'), { code: 0, stdout: /agent/ })
  t.match(await run(env, 'revoke', 'agent'), { code: 0 })
  // The server that ran the command has forgotten the token already; any other is told.
  if (backend.name === 'embedded') t.equal(await status(), 401)
  else await until(async () => (await status()) === 401, 'the server to forget the token')
})

t.test('wrong usage', async (t) => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /Missing action/],
    [['make', 'x'], /Unknown action "make"/],
    [['add'], /Missing NAME/],
    [['revoke'], /Missing NAME/],
    [['list', 'x'], /Too many arguments/],
    [['add', 'x', 'y'], /Too many arguments/],
    [['add', 'x', '--allow', 'everything'], /--allow takes replay/],
    [['add', 'x', '--json'], /takes no --json/],
    [['list', '--allow', 'replay'], /takes no --allow/],
    [['add', 'x', '--enable'], /--enable/],
  ]
  for (const [args, reason] of cases) {
    const result = await runCli(['endpoint', ...args])
    t.match(result, { code: 2, stdout: '', stderr: reason }, args.join(' '))
  }
})
