import * as Type from '../../kernel/schema.ts'
import { nullable } from '../../db/sql-file.ts'
import { Fault } from '../../kernel/fault.ts'
import { pause } from '../../kernel/time.ts'
import { accepted, integer } from '../../kernel/variables.ts'
import { parseTarget, TARGET_FORM } from '../../services/hooks/send/replays/outgoing.ts'
import { COUNT_REPLAYS_TO } from '../../services/hooks/send/replays/planning.ts'
import { apiClient, checkFrom, CLIENT_FLAGS, type ApiClient } from '../frame/api-client.ts'
import {
  command,
  JSON_FLAG,
  UsageError,
  value,
  type Call,
  type PlainTools,
} from '../frame/command.ts'
import { FILTER_FLAGS, ID, readQuery } from './events.ts'
import { DONE, FAILED, type Output } from '../frame/output.ts'

const ARGS = {
  id: { ...ID, shown: '[ID...]', summary: 'events by their ids', repeated: true },
} as const

const FLAGS = {
  to: value('URL', 'the target, else the default one', accepted(TARGET_FORM, parseTarget)),
  ...FILTER_FLAGS,
  // Not a duration, such as 24h: it would choose other events than the dry run counted.
  since: { ...FILTER_FLAGS.since, summary: 'only events from this time or id on' },
  'dry-run': { summary: 'count the events that the filter chooses, and send nothing' },
  'highest-id': { ...ID, summary: 'the highest event to send, as the dry run gave it' },
  confirm: value(
    'COUNT',
    'how many events to send, as the dry run counted them',
    integer({ min: 1, max: COUNT_REPLAYS_TO, of: 'events' }),
  ),
  json: JSON_FLAG,
  ...CLIENT_FLAGS,
}

type ReplayCall = Call<typeof ARGS, typeof FLAGS>

/** Times are texts in JSON. */
const Sent = Type.Object({
  outcome: Type.String(),
  status: nullable(Type.Integer()),
  ms: Type.Integer(),
  detail: nullable(Type.String()),
})
const Counted = Type.Object({
  count: Type.Integer(),
  more: Type.Boolean(),
  highest_id: nullable(Type.Integer()),
})
const Job = Type.Object({
  id: Type.String(),
  state: Type.String(),
  count: Type.Integer(),
  done: Type.Integer(),
  delivered: Type.Integer(),
  failed: Type.Integer(),
  failed_ids: Type.Array(Type.Integer()),
  waiting: Type.Integer(),
  ended_at: nullable(Type.String()),
})
type Job = Type.Static<typeof Job>
const Started = Type.Object({ job: Job })

const START = '/api/v1/events/replay'
const POLL_MS = 500

/** Fails when an event was not delivered. */
export const commands = [
  command({
    name: 'events replay',
    summary: 'send events to a target again: by their ids, or all that a filter chooses',
    args: ARGS,
    flags: FLAGS,
    needs: 'configuration',
    check(call) {
      checkFrom(call)
      readFilter(call)
    },
    async run(call, tools) {
      const client = apiClient(call.flags, tools.config)
      const filter = readFilter(call)
      if (filter === undefined) return replayIds(client, call, tools.output)
      const counted = await client.json(Counted, START, post({ ...filter, dry_run: true }))
      if (call.flags['dry-run']) return printCount(counted, call, tools.output)
      return replayCounted(client, filter, counted.count, call, tools)
    },
  }),
]

/** The filter of the call, or undefined where it names events; throws for a contradictory call. */
function readFilter({ args, flags }: ReplayCall) {
  const { 'highest-id': highest_id, confirm, 'dry-run': dryRun } = flags
  const filter = Object.fromEntries(readQuery(flags))
  const isFiltered = Object.keys(filter).length > 0
  if (args.id.length > 0) {
    if (!isFiltered && !dryRun && highest_id === undefined && confirm === undefined) {
      return undefined
    }
    throw new UsageError('Give ids of events or a filter, not both')
  }
  if (!isFiltered) {
    throw new UsageError('Give ids of events, or a filter such as --provider NAME')
  }
  if (dryRun && confirm !== undefined) throw new UsageError('--dry-run sends nothing to confirm')
  if (!dryRun && (highest_id === undefined || confirm === undefined)) {
    throw new UsageError('Run with --dry-run first: it gives --highest-id and --confirm')
  }
  return { ...filter, ...(highest_id !== undefined && { highest_id }) }
}

function post(body: object) {
  return { method: 'POST', body } as const
}

function targetOf({ flags: { to } }: ReplayCall) {
  return to === undefined ? {} : { target_url: to.href }
}

async function replayIds(client: ApiClient, call: ReplayCall, output: Output): Promise<number> {
  let code = DONE
  for (const id of call.args.id) {
    const sent = await client.json(Sent, `/api/v1/events/${id}/replay`, post(targetOf(call)))
    const { outcome, status, ms, detail } = sent
    if (outcome !== 'delivered') code = FAILED
    const line = [id, outcome, status ?? '-', `${ms} ms`, detail ?? ''].join('  ').trimEnd()
    output.out(call.flags.json ? JSON.stringify({ id, outcome, status, ms, detail }) : line)
  }
  return code
}

function printCount(counted: Type.Static<typeof Counted>, { flags }: ReplayCall, output: Output) {
  const { count, more, highest_id } = counted
  const next = `to send them: --highest-id ${highest_id} --confirm ${count}`
  const found = more ? `more than ${eventsText(count)}` : eventsText(count)
  const line = count === 0 ? 'no events match' : `${found}; ${next}`
  output.out(flags.json ? JSON.stringify({ count, more, highest_id }) : line)
  return DONE
}

/** Starts the job and follows it to its end, or until a signal. The job does not need that. */
async function replayCounted(
  client: ApiClient,
  filter: object,
  count: number,
  call: ReplayCall,
  { output, stopSignal }: PlainTools,
): Promise<number> {
  const { confirm, json } = call.flags
  if (count !== confirm) {
    const message = `found ${eventsText(count)}, expected ${confirm}; run with --dry-run again`
    throw new Fault(409, 'COUNT_DIFFERS', message)
  }
  const stop = new AbortController()
  void stopSignal().then(() => stop.abort())
  const started = await client.json(Started, START, post({ ...filter, ...targetOf(call) }))
  const progress = (line: string) => output.err(line)
  progress(`job ${started.job.id}: a signal ends this command, not the job`)
  const job = await follow(client, started.job, stop.signal, progress)
  output.out(json ? JSON.stringify(job) : jobText(job))
  return job.state === 'finished' && job.failed === 0 ? DONE : FAILED
}

async function follow(
  client: ApiClient,
  started: Job,
  stop: AbortSignal,
  progress: (line: string) => void,
): Promise<Job> {
  let job = started
  while (job.ended_at === null && !stop.aborted) {
    await pause(POLL_MS, stop)
    const before = progressText(job)
    job = await client.json(Job, `/api/v1/replay-jobs/${job.id}`)
    if (progressText(job) !== before) progress(progressText(job))
  }
  return job
}

function progressText({ state, count, done, failed }: Job): string {
  if (state === 'planning') return `${eventsText(count)} found so far`
  return `${done} of ${count} done${failed > 0 ? `, ${failed} failed` : ''}`
}

function jobText({ id, state, ended_at, delivered, failed, failed_ids, waiting }: Job): string {
  const hidden = failed > failed_ids.length ? ' …' : ''
  const ids = failed > 0 ? ` (${failed_ids.join(' ')}${hidden})` : ''
  const rest = waiting > 0 ? `, ${waiting} not sent` : ''
  const goesOn = ended_at === null ? `; job ${id} goes on` : ''
  return `${state}: ${delivered} delivered, ${failed} failed${ids}${rest}${goesOn}`
}

function eventsText(count: number) {
  return count === 1 ? '1 event' : `${count} events`
}
