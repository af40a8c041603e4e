import { runCli, runCliProcess } from './cli.ts'
import type { CliProcessOptions } from './cli.ts'
import type { Env } from './program.ts'

/** A line of `gatehouse check`. */
export type Finding = { ok: boolean; level: string; what: string; detail: string }

/** What `gatehouse check` found. */
export type Check = {
  readonly code: number | null
  readonly findings: readonly Finding[]
  /** `LEVEL DETAIL` of each line about one thing. */
  about(what: string): readonly string[]
}

/** Addresses that are always free: what else listens on this machine is none of a test's business. */
export const FREE = {
  HOOKS_ADDR: '127.0.0.1:0',
  LINKS_ADDR: '127.0.0.1:0',
  OPS_ADDR: '127.0.0.1:0',
}

/** Runs `gatehouse check --json`. Throws when it prints anything else than findings. */
export async function check(
  env: Env,
  args: readonly string[] = [],
  options: Pick<CliProcessOptions, 'program'> = {},
): Promise<Check> {
  const all = { ...options, env: { ...FREE, ...env } }
  const run = options.program === undefined ? runCli : runCliProcess
  const { code, stdout, stderr } = await run(['check', ...args, '--json'], all)
  if (stderr !== '') throw new Error(`check said on stderr: ${stderr}`)
  const findings: readonly Finding[] = JSON.parse(stdout)
  const about = (what: string): readonly string[] =>
    findings.filter((one) => one.what === what).map(({ level, detail }) => `${level} ${detail}`)
  return { code, findings, about }
}
