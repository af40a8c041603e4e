import type { Test } from 'tap'
import { runCli } from './cli.ts'
import type { Env } from './program.ts'

/** A line of `gatehouse audit --json`. */
type AuditLine = Record<'at' | 'actor' | 'action' | 'service' | 'subject', string>

/** What is done, and the lines that it leaves, as `ACTOR: ACTION SUBJECT`; none where it is refused. */
type Step = readonly [
  what: string,
  act: () => Promise<unknown>,
  ...lines: readonly (string | RegExp)[],
]

/** The user whom the proxy names. */
export const ANN = { 'Remote-Email': 'ann@example.com' } as const

/** Variables of a server that stands behind a proxy on this machine. */
export const PROXIED: Env = { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32' }

/** The lines that the command prints, newest first. */
export async function auditOf(env: Env, ...flags: string[]) {
  const { code, stdout, stderr } = await runCli(['audit', '--json', ...flags], { env })
  if (code !== 0) throw new Error(`audit ended with ${code}: ${stderr}`)
  const lines = stdout.split('\n').slice(0, -1)
  return lines.map((line): AuditLine => JSON.parse(line))
}

/** Does one thing after the other, and compares the lines that each leaves in the audit of a service. */
export async function changesLeave(t: Test, env: Env, service: string, steps: readonly Step[]) {
  const all = async () => await auditOf(env, '--service', service, '--limit', '1000')
  let known = (await all()).length
  for (const [what, act, ...expected] of steps) {
    await act()
    const lines = await all()
    const added = lines.slice(0, lines.length - known).toReversed()
    known = lines.length
    const texts = added.map(({ actor, action, subject }) => `${actor}: ${action} ${subject}`)
    t.match(texts, expected, what)
    t.equal(texts.length, expected.length, `${what}: the number of lines`)
  }
}

/** A command that must end with this code; what it prints may hold a secret. */
export async function command(env: Env, code: number, ...words: string[]) {
  const ended = await runCli(words, { env, secretShown: true })
  if (ended.code === code) return
  throw new Error(`${words.join(' ')} ended with ${ended.code}: ${ended.stderr}`)
}
