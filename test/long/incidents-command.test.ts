import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { calls, MODEL_KEY, says, startModel } from '../helpers/model.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { exitOf, spawnProgram } from '../helpers/program.ts'

// `npm run incidents` as people run it, on an embedded database that it creates: a start costs seconds.

async function run(args: readonly string[]) {
  const child = spawnProgram(args, {}, [process.execPath, 'test/incidents/run.ts'])
  let out = ''
  for (const pipe of [child.stdout, child.stderr]) pipe.on('data', (text) => (out += String(text)))
  return { code: (await exitOf(child)).code, out }
}

t.test('a table of what a model has made of incidents', async (t) => {
  const folder = await temporaryFolder(t, 'incidents')
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const model = await startModel(t, ({ step, prompt }) => {
    if (prompt.includes('database went away')) {
      return step === 0
        ? calls(['journal', { minutes: 60 }])
        : says('OOM: monthly.py, not postgres')
    }
    return says('All is well.')
  })
  const { code, out } = await run([
    '--model-url',
    model.env['OPS_MODEL_URL'] ?? '',
    '--model',
    'one',
    '--key-file',
    file('key', `${MODEL_KEY}\n`),
    '--output',
    join(folder, 'kept'),
    '--prices',
    file('prices.json', '{"one": {"input": 10, "output": 10}}'),
    '--only',
    'oom-kill',
    '--only',
    'port-taken',
  ])
  t.equal(code, 1, 'not all have passed')
  const [head, , first, second, , sum] = out.trim().split('\n')
  t.match(head, '| incident | passed | what is wrong | turns | tokens | cost | seconds |')
  t.match(first, /^\| oom-kill \| yes \| {2}\| 2 \| 2,200 \| \$0\.0220 \| \d+\.\d \|$/)
  t.match(
    second,
    /^\| port-taken \| no \| missing: 8080; missing: 4711 or dev-server; missing: anna/,
  )
  t.equal(sum, '1 of 2 passed')
  t.equal(readdirSync(join(folder, 'kept/results')).length, 2, 'the output of the sessions')
})

t.test('what it refuses', async (t) => {
  for (const [args, problem] of [
    [[], /--model-url URL/],
    [['--recorded', 'maybe'], /--recorded good\|bad/],
    [['--only', 'none', '--list'], /there is no incident "none": --list names them/],
    [['--model-url', 'http://127.0.0.1:9', '--max-turns', 'no'], /--max-turns is a number/],
    [['--model-urll', 'x'], /Unknown option '--model-urll'/],
  ] as const) {
    const { code, out } = await run(args)
    t.equal(code, 2, args.join(' '))
    t.match(out, problem)
  }
})
