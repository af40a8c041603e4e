import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { calls, inTier, says, startModel } from '../helpers/model-endpoint.ts'
import type { Call } from '../helpers/model-endpoint.ts'
import { ended, inventoryFile, startOps, trigger } from '../helpers/ops-setup.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { run } from '../helpers/postgres.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { secret } from '../helpers/secrets.ts'

const [, postgres] = backends

/** Every text of the ops schema, as one. */
async function everything(url: string): Promise<string> {
  const tables = ['sessions', 'session_lines', 'events', 'memories', 'actions', 'notices']
  const rows = await Promise.all(
    tables.map((table) => run(url, `select to_jsonb(x)::text as row from ops.${table} x`, [])),
  )
  return rows.flat().map(String).join('\n') + JSON.stringify(rows)
}

t.test('a secret that a model or a tool echoes is kept nowhere', async (t) => {
  // Few characters a chunk: the secret comes in pieces.
  const model = await startModel(t, undefined, { chunkSize: 5 })
  const key = model.env['OPS_MODEL_KEY'] ?? ''
  const base64 = Buffer.from(`user:${key}`).toString('base64')
  const forms = [key, encodeURIComponent(key), base64, Buffer.from(key).toString('base64url')]
  const echo = `seen ${forms.join(' and ')} here`
  const folder = await temporaryFolder(t, 'secrets')
  writeFileSync(join(folder, 'leak.conf'), `first\nkey = ${key}\n${echo}\n`)
  const results = join(folder, 'results')
  const print = ['node', '-e', 'console.log(process.argv[1]); process.exit(4)', echo]
  const operation = { name: 'restart', action_type: 'restart', argv: print }
  const ops = await startOps(t, postgres, {
    ...model.env,
    OPS_REPOS_DIR: folder,
    OPS_UNSANDBOXED: 'true',
    OPS_RESULTS_DIR: results,
    OPS_INVENTORY: await inventoryFile(t, {
      services: [{ name: 'shop', checks: [], operations: [operation] }],
      readonly: [['echo']],
    }),
  })
  await ended(ops)
  const told: string[] = []
  const list: readonly Call[] = [
    ['read_file', { path: 'leak.conf' }],
    ['run_readonly', { argv: ['echo', echo] }],
    ['record_event', { level: 'critical', message: echo, service: key }],
    ['remember', { category: 'behavior', observation: echo, service: key }],
    ['run_operation', { service: 'shop', operation: 'restart', reason: echo }],
    [key, { [key]: key }],
    ['recall', `{"service": "${key}`],
  ]
  const up: Call = ['escalate', { reason: echo, findings: `${echo}\n${echo}` }]
  model.answer((asked) => {
    told.push(...asked.results)
    if (asked.tier < 3) return calls(up)
    return inTier(3, ({ step }) => (step === 0 ? calls(...list) : says(`All: ${echo}`)))(asked)
  })
  await trigger(ops, `why does ${key} not work?`)
  const last = await ended(ops)
  t.match(last, { tier: 3, status: 'completed', num_turns: 2 })
  t.equal(told.length, list.length)
  model.answer(() => ({ error: { message: `bad key ${echo}` }, status: 400 }))
  t.match(await ended(ops, (await trigger(ops)).id), { status: 'failed' })

  const stored = await everything(ops.env['DATABASE_URL'] ?? '')
  const files = readdirSync(results).map((name) => readFileSync(join(results, name), 'utf8'))
  const places: Readonly<Record<string, string>> = {
    database: stored,
    files: files.join('\n'),
    log: ops.server.logs().join('\n'),
    'what tools answer': told.join('\n'),
    'prompts of the chain': model.asked.map(({ prompt }) => prompt).join('\n'),
  }
  t.match(stored, /seen «redacted» and «redacted» and/)
  t.match(places['files'], /All: seen «redacted»/)
  t.match(places['files'], /bad key seen «redacted»/)
  const middle = Buffer.from(key).toString('base64').slice(4, 20)
  for (const [place, text] of Object.entries(places)) {
    for (const form of [...forms, middle]) t.notOk(text.includes(form), `${place} has no ${form}`)
  }
})

t.test('no half of a secret stays where an error of the endpoint is cut', async (t) => {
  const key = secret('model-key')
  const stream = { 'content-type': 'text/event-stream' }
  const text = { 'content-type': 'text/plain' }
  const answers = [
    // 300 characters are told, and 10,000 bytes are read.
    [400, text, `${'x'.repeat(290)}${key}`],
    [400, text, `${' '.repeat(9_990)}${key}`],
    [200, stream, `data: ${JSON.stringify({ error: `${'y'.repeat(290)}${key}` })}\n\n`],
  ] as const
  let at = 0
  const { url } = await startReceiver(t, (_, response) => {
    const [status, headers, body] = answers[at] ?? answers[0]
    response.writeHead(status, headers).end(body)
  })
  const env = { OPS_MODEL_URL: `${url}/v1`, OPS_MODEL_KEY: key }
  const ops = await startOps(t, postgres, env)
  t.match(await ended(ops), { status: 'failed' })
  for (at = 1; at < answers.length; at++) {
    t.match(await ended(ops, (await trigger(ops)).id), { status: 'failed' })
  }
  const stored = await everything(ops.env['DATABASE_URL'] ?? '')
  t.match(stored, /x{290}«redacted»/)
  t.match(stored, /y{290}«redacted»/)
  t.notMatch(stored, key.slice(0, 10))
})
