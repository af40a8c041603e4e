import fc from 'fast-check'
import type { Test } from 'tap'
import { nameOf } from './profile.ts'
import type { FuzzProfile } from './profile.ts'
import { checkAnswer, isBroken, typeOf } from './promises.ts'
import { plainShot, requestOf, wildShot } from './requests.ts'
import type { Shot } from './requests.ts'
import { curlLine, exchange, isFramed, told } from './wire.ts'
import type { WireAnswer, WireRequest } from './wire.ts'
import { residentKib } from '../../helpers/process-figures.ts'
import type { ServerProcess } from '../../helpers/server-process.ts'
import { until } from '../../helpers/until.ts'

/** How much is sent: good requests to each route, and sequences of odd ones to any. */
export type FuzzRuns = { readonly plain: number; readonly sequences: number }

/** Several requests, one after the other or at once, and perhaps all of them again. */
type Sequence = {
  readonly shots: readonly Shot[]
  readonly together: boolean
  readonly again: boolean
}

const REFRESH_EVERY = 20
/** Good requests to a route until one of them is answered well. */
const MOST_TRIES = 60
const MEGABYTE = 1_048_576
/** What a process may have grown by from the middle of the random calls to their end. */
const MAY_GROW = 96 * MEGABYTE

/**
 * Sends requests of every kind to every route of a service and holds each answer against what every answer
 * promises. When one breaks a promise, the shortest sequence that does is shown, with its seed and as lines
 * of curl: GATEHOUSE_TEST_SEED=… repeats it.
 */
export async function fuzz(
  t: Test,
  server: ServerProcess,
  profile: FuzzProfile,
  runs: FuzzRuns,
): Promise<void> {
  const seed = Number(process.env['GATEHOUSE_TEST_SEED'] ?? Date.now() % 2 ** 31)
  const { routes } = profile.table
  const player = openPlayer(profile)
  await profile.refresh()

  for (const route of routes) {
    const one = plainShot(route, profile).map((shot) => ({ ...ONCE, shots: [shot] }))
    const property = fc.asyncProperty(one, player.play)
    await hold(property, { numRuns: runs.plain, seed })
    // Few of them may all have named what is not there.
    for (let more = 1; more < MOST_TRIES && !player.answeredWell.has(nameOf(route)); more++) {
      if (more % 3 === 1) await profile.refresh()
      await hold(property, { numRuns: 1, seed: seed + more })
    }
  }
  const unanswered = routes.map(nameOf).filter((name) => !player.answeredWell.has(name))
  t.same(unanswered, [], 'every route was called, and answered well at least once')

  const shot = fc.oneof(...routes.map((route) => wildShot(route, profile)))
  const sequence = fc.record({
    shots: fc.array(shot, { minLength: 1, maxLength: 6 }),
    together: fc.oneof(fc.constant(false), fc.constant(false), fc.boolean()),
    again: fc.oneof(fc.constant(false), fc.constant(false), fc.boolean()),
  })
  let [played, middle] = [0, 0]
  const property = fc.asyncProperty(sequence, async (one) => {
    if (played++ === Math.floor(runs.sequences / 2)) middle = residentKib(server.pid)
    await player.play(one)
  })
  await hold(property, { numRuns: runs.sequences, seed })

  const grown = (residentKib(server.pid) - middle) * 1024
  t.ok(grown < MAY_GROW, `memory grew by ${Math.round(grown / MEGABYTE)} MiB in the second half`)
  const { status, headers } = await player.ask(healthOf(profile))
  t.equal(status, 200, 'the server still answers')
  await logsAreQuiet(t, server, profile, headers.get('x-request-id')?.[0] ?? '')
  t.comment(`${player.summary()}, seed ${seed}`)
}

/** As `fc.assert`, with what a person needs to repeat the failure. */
async function hold<T>(
  property: fc.IAsyncProperty<T>,
  how: { readonly numRuns: number; readonly seed: number },
): Promise<void> {
  const { failed, errorInstance, numRuns, numShrinks } = await fc.check(property, how)
  if (!failed) return
  const where = `seed ${how.seed}, run ${numRuns}, shrunk ${numShrinks} times`
  throw new Error(`${where}:\n${String(errorInstance)}`)
}

const ONCE = { together: false, again: false } as const
const healthOf = ({ base }: FuzzProfile): WireRequest => ({
  ...{ method: 'GET', target: '/healthz', body: undefined, framing: 'length' },
  headers: [
    ['host', new URL(base).host],
    ['connection', 'close'],
  ],
})

/** Everything that the server logged is information, or a warning that is expected. */
async function logsAreQuiet(
  t: Test,
  server: ServerProcess,
  profile: FuzzProfile,
  last: string,
): Promise<void> {
  const id = `"request_id":"${last}"`
  await until(() => server.logs().some((line) => line.includes(id)), 'the log of the last request')
  const loud = server
    .logs()
    .filter((line) => !line.includes('"level":"info"'))
    .filter((line) => {
      const message = /"msg":"([^"]*)"/.exec(line)?.[1] ?? ''
      return !line.includes('"level":"warn"') || !(message in profile.mayWarn)
    })
  t.same(loud.slice(0, 5), [], 'nothing is logged as an error')
}

function openPlayer(profile: FuzzProfile) {
  const base = new URL(profile.base)
  const answeredWell = new Set<string>()
  const called = new Set<string>()
  const statuses = new Map<number, number>()
  let [requests, sequences] = [0, 0]

  async function ask(request: WireRequest): Promise<WireAnswer> {
    requests++
    const answer = await exchange(base, request)
    if (answer === undefined) throw new Error('the connection was closed without an answer')
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    return answer
  }

  async function fire(shot: Shot, sent: string[]): Promise<void> {
    const request = requestOf(shot, profile)
    const line = curlLine(profile.base, request)
    sent.push(line)
    let answer: WireAnswer | undefined
    try {
      answer = await ask(request)
      const match = profile.table.find(request.method, pathOf(request.target))
      checkAnswer(answer, request, match, profile)
      if (match.kind === 'route' && !isBroken(answer, request)) {
        called.add(nameOf(match.route))
        if (answer.status < 400) answeredWell.add(nameOf(match.route))
      }
      if (request.method === 'HEAD' && !isBroken(answer, request) && isFramed(request))
        await likeGet(request, answer)
    } catch (error) {
      if (answer === undefined && mayBeCut(request)) return
      const got = answer === undefined ? '' : `\nanswered ${told(answer)}`
      throw new Error(`${String(error)}${got}`, { cause: error })
    }
  }

  /** HEAD says what GET does. */
  async function likeGet(request: WireRequest, head: WireAnswer): Promise<void> {
    // A handshake is a GET (RFC 6455 section 4.1), and guarded as one.
    if (request.headers.some(([name]) => name.toLowerCase() === 'upgrade')) return
    const get = await ask({ ...request, method: 'GET' })
    if (get.status !== head.status || typeOf(get) !== typeOf(head)) {
      throw new Error(`HEAD is no GET without its body, which is ${told(get)}`)
    }
  }

  async function play({ shots, together, again }: Sequence): Promise<void> {
    if (sequences++ % REFRESH_EVERY === 0) await profile.refresh()
    const sent: string[] = []
    const all = again ? [...shots, ...shots] : shots
    try {
      if (together) await Promise.all(all.map((shot) => fire(shot, sent)))
      else for (const shot of all) await fire(shot, sent)
    } catch (error) {
      throw new Error(`${String(error)}\nsent${together ? ' at once' : ''}:\n${sent.join('\n')}`, {
        cause: error,
      })
    }
  }

  function summary(): string {
    const seen = [...statuses].toSorted(([a], [b]) => a - b).map(([status, n]) => `${status}×${n}`)
    return `${requests} requests to ${called.size} routes in ${sequences} sequences: ${seen.join(' ')}`
  }

  return { play, ask, answeredWell, summary }
}

/** CONNECT is no request of a service, and what is framed wrongly may end a connection. */
function mayBeCut(request: WireRequest): boolean {
  return request.method === 'CONNECT' || !isFramed(request)
}

/** The path that a request line asks for. */
function pathOf(target: string): string {
  const origin = target.startsWith('/')
    ? target
    : target.replace(/^https?:\/\/[^/?#]*(?=[/?]|$)/i, '') || '/'
  return origin.split('?', 1)[0] ?? ''
}
