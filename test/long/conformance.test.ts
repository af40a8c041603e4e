import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { t } from 'tap'
import { startFixtures } from './conformance-server.ts'

const SUITE = createRequire(import.meta.url).resolve(
  '@modelcontextprotocol/conformance/package.json',
)
const EXPECTED = join(import.meta.dirname, 'conformance-expected-failures.yml')

/** Both requirement sets of the official suite, with how many server scenarios each has. */
const SETS = [
  { revision: '2026-07-28', required: 37, expected: 21 },
  { revision: '2025-11-25', required: 30, expected: 15 },
] as const

/** Runs the suite against a URL; gives its exit code and what it said, without colours. */
async function runSuite(url: string, revision: string) {
  const program = join(SUITE, '..', 'dist', 'index.js')
  const options = ['--url', url, '--requirements', revision, '--expected-failures', EXPECTED]
  const child = spawn(process.execPath, [program, 'server', ...options], {
    // tap's own loaders have no business in the suite.
    env: { PATH: process.env['PATH'] ?? '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = Promise.withResolvers<number>()
  child.once('error', ended.reject)
  child.once('close', (code) => ended.resolve(code ?? 1))
  const code = await ended.promise
  return { code, output: stripVTControlCharacters(output) }
}

for (const { revision, required, expected } of SETS) {
  t.test(`official conformance suite, requirements ${revision}`, async (t) => {
    const url = (await startFixtures(t)).replace('127.0.0.1', 'localhost')
    const { code, output } = await runSuite(url, revision)
    if (code !== 0) t.comment(output)
    t.equal(code, 0, 'nothing fails but what is expected to, and nothing expected passes')
    t.match(output, 'Baseline check passed')
    const known = output.match(/^ {2}~ .+$/gm) ?? []
    t.equal(known.length, expected, 'expected failures, as the file lists them')
    const run = Number(/Running requirements \S+ \((\d+) scenarios\)/.exec(output)?.[1])
    t.ok(run >= required, `${required} required scenarios were run`)
  })
}
