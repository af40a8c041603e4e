import { runCli } from './cli.ts'
import type { CliResult } from './cli.ts'
import type { Env } from './program.ts'
import type { Received } from './replays.ts'
import { noteSeen, until } from './until.ts'

/** A destination as `destination list --json` prints it. */
export type Listed = {
  readonly name: string
  readonly url: string
  readonly disabled_by: string | null
  readonly failing: boolean
  readonly position: number
  readonly delivered: number
  readonly waiting: number
  readonly dead: number
  readonly gap: number
  readonly gap_through: number | null
  readonly last_status: number | null
  readonly last_detail: string | null
}

/** The id of the event that a receiver got, as the key of the delivery has it. */
export function eventOf(got: Pick<Received, 'headers'> | undefined): number {
  return Number(String(got?.headers['idempotency-key']).split('-')[1])
}

/** Runs `gatehouse destination …`. */
export function destination(env: Env, ...words: readonly string[]): Promise<CliResult> {
  return runCli(['destination', ...words], { env })
}

/** Adds a destination; throws when it is refused. */
export async function addDestination(
  env: Env,
  name: string,
  url: string,
  ...flags: readonly string[]
): Promise<void> {
  const { code, stderr } = await destination(env, 'add', name, url, ...flags)
  if (code !== 0) throw new Error(`destination add ended with ${code}: ${stderr}`)
}

/** What is listed of a destination. */
export async function listed(env: Env, name: string): Promise<Listed> {
  const { stdout } = await destination(env, 'list', '--json')
  const rows: readonly Listed[] = JSON.parse(stdout)
  const row = rows.find((one) => one.name === name)
  if (row === undefined) throw new Error(`destination list has no "${name}"`)
  return row
}

/** Waits until a destination is listed with these values. */
export function untilListed(
  env: Env,
  name: string,
  expected: Partial<Listed>,
  timeoutMs = 15_000,
): Promise<Listed> {
  const names = Object.keys(expected) as (keyof Listed)[]
  const fitting = async () => {
    const row = await listed(env, name)
    noteSeen(`listed: ${JSON.stringify(row)}`)
    return names.every((one) => row[one] === expected[one]) && row
  }
  return until(fitting, `${name} with ${JSON.stringify(expected)}`, timeoutMs, 200)
}
