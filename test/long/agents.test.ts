import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { findProgram } from '../../kernel/processes/find-program.ts'
import { startAgentModel } from '../helpers/agent-models.ts'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { ended, eventsOfSession, startOps, trigger } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'

const [, postgres] = backends
const ANSWER = 'Nothing else is wrong.'

/** Where the agents are: `npm install --prefix FOLDER` of their packages; else those of the PATH. */
const place = process.env['GATEHOUSE_TEST_AGENTS']
const path = place === undefined ? '' : join(place, 'node_modules/.bin')

/** How each real agent is told of its model; `home` is a folder that stands for its user's. */
const AGENTS: Readonly<
  Record<string, (url: string, home: string) => { env: Record<string, string>; args: string }>
> = {
  claude: (url) => ({
    env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'test-key-of-claude' },
    args: '',
  }),
  codex: (url) => ({
    env: { OPENAI_API_KEY: 'test-key-of-codex', CODEX_API_KEY: 'test-key-of-codex' },
    args: `-c openai_base_url=${url}/v1`,
  }),
  opencode(url, home) {
    const model = { npm: '@ai-sdk/openai-compatible', models: { m: {} } }
    const options = { baseURL: `${url}/v1`, apiKey: 'test-key-of-opencode' }
    const file = join(home, 'opencode.json')
    writeFileSync(
      file,
      JSON.stringify({ provider: { own: { ...model, options } }, model: 'own/m' }),
    )
    return { env: { OPENCODE_CONFIG: file }, args: '' }
  },
  gemini: (url, home) => {
    mkdirSync(join(home, '.gemini'))
    const auth = { selectedType: 'gemini-api-key' }
    writeFileSync(join(home, '.gemini/settings.json'), JSON.stringify({ security: { auth } }))
    return {
      env: { GEMINI_API_KEY: 'test-key-of-gemini', GOOGLE_GEMINI_BASE_URL: url },
      args: '',
    }
  },
}

for (const [name, tell] of Object.entries(AGENTS)) {
  const program = findProgram(name, `${path}:${process.env['PATH']}`)
  const skip = program === undefined && `no ${name} here: set GATEHOUSE_TEST_AGENTS`
  t.test(`${name} acts by the tools of its session`, { skip }, async (t) => {
    const home = await temporaryFolder(t, 'home')
    const url = await startAgentModel(t, {
      tool: 'record_event',
      args: { level: 'warning', message: `Seen by ${name}` },
      returns: 'Recorded as event',
      answer: ANSWER,
    })
    const { env, args } = tell(url, home)
    const variables = { ...env, HOME: home }
    const before = Object.keys(variables).map((key) => [key, process.env[key]] as const)
    Object.assign(process.env, variables)
    t.teardown(() => {
      for (const [key, value] of before) {
        if (value === undefined) delete process.env[key]
        else process.env[key] = value
      }
    })
    const ops = await startOps(t, postgres, {
      OPS_RUNNER: 'cli',
      OPS_AGENT_COMMAND: `${program} ${args}`.trim(),
      OPS_TIER1_MODEL: name === 'gemini' ? 'gemini-2.5-flash' : 'default',
    })
    await ended(ops, undefined, 90_000)
    const done = await ended(ops, (await trigger(ops)).id, 90_000)
    t.match(done, { status: 'completed' })
    t.match((await request(`${ops.base}/sessions/${done.id}`)).text, ANSWER)
    const events = await eventsOfSession(ops, done.id)
    t.match(events, [{ level: 'warning', message: `Seen by ${name}` }])
  })
}
