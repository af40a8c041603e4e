import { request as send } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { startAgentOps } from '../test/helpers/agents.ts'
import { backends, postgres } from '../test/helpers/backends.ts'
import {
  inventoryFile,
  startOps,
  trigger,
  type OpsServer,
  type Session,
} from '../test/helpers/ops.ts'
import { until } from '../test/helpers/until.ts'
import { quantile, type Figure, type Owner, type Part } from './helpers/measure.ts'

const REQUESTS = 2_000
/** A request comes this often, whether the one before is answered or not: a stall is seen in full. */
const EACH_MS = 5
const P99_MS = 100
/** A line of no agent that is known, which is kept as it is. */
const LINE = JSON.stringify({ type: 'tomorrow', text: 'x'.repeat(200) })

/** `GET /api/v1/health` while a session's process writes as fast as it can. */
export const opsHealth: Part = {
  name: 'ops-health',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const figures: Figure[] = []
    for (const backend of backends) {
      const ops = await startAgentOps(owner, backend)
      figures.push(...figuresOf(`${backend.name}, idle`, await askHealth(ops.base)))
      ops.agent.does(`exec yes '${LINE}'\n`)
      const { id } = await trigger(ops)
      const stored = (): number => ops.lines(id).at(-1)?.seq ?? 0
      await until(() => stored() > 1_000, 'the flood', 30_000)
      const [before, started] = [stored(), performance.now()]
      const times = await askHealth(ops.base)
      const seconds = (performance.now() - started) / 1_000
      await stillRuns(ops, id)
      const perSecond = (stored() - before) / seconds
      figures.push(...figuresOf(`${backend.name}, agent floods`, times), {
        name: `${backend.name}, lines stored meanwhile`,
        value: perSecond,
        unit: '/s',
      })
      await ops.server.stop()
    }
    return [...figures, ...(await floodOfCheck(owner))]
  },
}

/** The output of a command is read to its end, though only its beginning is kept. */
async function floodOfCheck(owner: Owner): Promise<readonly Figure[]> {
  const check = { type: 'command', argv: ['yes', LINE], timeout_s: 60 }
  const services = [{ name: 'flood', checks: [check] }]
  const env = { OPS_INVENTORY: await inventoryFile(owner, { services }) }
  const ops = await startOps(owner, postgres, env)
  const { id } = await until(() => running(ops), 'the session at start')
  const times = await askHealth(ops.base)
  await stillRuns(ops, id)
  await ops.server.stop()
  return figuresOf('postgres, command check floods', times)
}

/** Milliseconds from the sending of each request to its whole answer. */
async function askHealth(base: string): Promise<readonly number[]> {
  const answers: Promise<number>[] = []
  const started = performance.now()
  for (let n = 0; n < REQUESTS; n++) {
    await pause(Math.max(0, started + n * EACH_MS - performance.now()))
    answers.push(askOnce(`${base}/api/v1/health`))
  }
  return Promise.all(answers)
}

function askOnce(url: string): Promise<number> {
  const started = performance.now()
  return new Promise((resolve, reject) => {
    const outgoing = send(url, { agent: false }, (incoming) => {
      if (incoming.statusCode !== 200) reject(new Error(`health answered ${incoming.statusCode}`))
      incoming.on('end', () => resolve(performance.now() - started)).resume()
    })
    outgoing.on('error', reject).end()
  })
}

async function running({ api }: OpsServer): Promise<Session | undefined> {
  const { json } = await api<{ sessions: readonly Session[] }>('GET', '/sessions')
  return json.sessions.find(({ status }) => status === 'running')
}

/** A flood that ended meanwhile has measured nothing. */
async function stillRuns(ops: OpsServer, id: number): Promise<void> {
  if ((await running(ops))?.id !== id)
    throw new Error(`session ${id} ended before the measurement`)
}

function figuresOf(name: string, times: readonly number[]): readonly Figure[] {
  const p99 = quantile(times, 0.99)
  return [
    { name: `${name}: p50`, value: quantile(times, 0.5), unit: 'ms' },
    { name: `${name}: p99`, value: p99, unit: 'ms', bound: `≤ ${P99_MS}`, kept: p99 <= P99_MS },
    { name: `${name}: max`, value: Math.max(...times), unit: 'ms' },
  ]
}
