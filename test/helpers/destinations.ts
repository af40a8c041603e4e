import { apiOf } from './api.ts'
import { runCli } from './cli.ts'
import type { Env } from './program.ts'
import { expectStatus } from './refusals.ts'
import type { Received } from './replays.ts'
import { until } from './until.ts'

/** A destination as the API shows it. */
type Listed = {
  disabled_by: string | null
  failing: boolean
  position: number
  delivered: number
  waiting: number
  dead: number
  gap: number
  last_status: number | null
  last_detail: string | null
}

/** The id of the event that a receiver got, as the key of the delivery has it. */
export function eventOf(got: Pick<Received, 'headers'> | undefined): number {
  return Number(String(got?.headers['idempotency-key']).split('-')[1])
}

/** Runs `gatehouse destination …`. */
export function destination(env: Env, ...words: readonly string[]) {
  return runCli(['destination', ...words], { env })
}

/** Adds a destination by the API of the service at `base`; gives it as the answer shows it. */
export async function addDestination(
  base: string,
  name: string,
  url: string,
  members: object = {},
) {
  const made = apiOf(base)('POST', '/destinations', { name, url, ...members })
  return (await expectStatus(201, made, name)).json
}

/** Tries again what waits for a destination, or what `body` chooses. */
export async function retry(base: string, name: string, body: object = {}): Promise<unknown> {
  const retried = apiOf(base)('POST', `/destinations/${name}/retry`, body)
  return (await expectStatus(200, retried, name)).json
}

/** What is listed of a destination. */
export async function listed(base: string, name: string): Promise<Listed> {
  const found = apiOf(base)<Listed>('GET', `/destinations/${name}`)
  return (await expectStatus(200, found, name)).json
}

/** Waits until a destination is listed with these values. */
export function untilListed(
  base: string,
  name: string,
  expected: Partial<Listed>,
  timeoutMs = 15_000,
) {
  const names = Object.keys(expected) as (keyof Listed)[]
  const fitting = async () => {
    const row = await listed(base, name)
    return names.every((one) => row[one] === expected[one]) && row
  }
  return until(fitting, `${name} with ${JSON.stringify(expected)}`, timeoutMs, 100)
}
