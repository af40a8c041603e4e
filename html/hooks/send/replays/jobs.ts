import { html, type Html, type Printable } from '../../../../kernel/html.ts'
import type { FormState, Page } from '../../../../kernel/http/view.ts'
import type { ExportQuery } from '../../../../services/hooks/log/events/filter.ts'
import type { ReplayJob } from '../../../../services/hooks/send/replays/jobs.ts'
import type { CountedEvents } from '../../../../services/hooks/send/replays/planning.ts'
import { hiddenField, postForm, refusal, submit } from '../../../form.ts'
import {
  attributes,
  breakable,
  countText,
  emptyState,
  facts,
  listTable,
  polled,
  rowLink,
  tableRow,
  timeTag,
} from '../../../parts.ts'
import { lastAnswer } from '../../layout.ts'
import { chosenFilters } from '../../log/events/filter.ts'
import { logUrl } from '../../log-url.ts'
import { listHead } from '../../log/events/list.ts'
import { targetField } from './replays.ts'

/** What `/replays/new` shows: the events that would be sent. */
interface NewReplayView {
  filter: ExportQuery
  counted: CountedEvents
  /** No event above it is sent. */
  highestId: number
  /** Where events are sent when no target is given; null when the settings name none. */
  defaultTarget: string | null
  form: FormState
}

/** `/replays/new`: how many events the filters of the log choose, and the form that sends them. */
export function newReplayPage(view: NewReplayView): Page {
  return {
    title: 'Replay events',
    section: 'log',
    body: html`<p class="crumb"><a href="${logUrl(view.filter)}">Log</a> / Replay</p>
      <h1>Replay events</h1>
      ${HOW} ${newReplayFragment(view)}`,
  }
}

const HOW = html`<p class="muted">
  The oldest are sent first, many at a time, each signed again for a signed provider. What the
  receiver does not take is tried again for about a day.
</p>`

/** The page's content, in whose place the job comes. */
export function newReplayFragment(view: NewReplayView): Html {
  const { filter, counted, highestId } = view
  const isEmpty = counted.count === 0 && !counted.more
  return html`<div id="new-replay" class="panel">
    ${facts({
      'Chosen by': filterText(filter),
      Events: countedText(counted),
      'Up to': isEmpty ? false : html`event ${highestId}; newer ones are not sent`,
    })}
    ${
      isEmpty
        ? emptyState(
            'No event matches these filters.',
            html`<a href="${logUrl(filter)}">Back to the log</a>`,
          )
        : newReplayForm(view)
    }
  </div>`
}

function countedText({ count, more }: CountedEvents): string {
  return more ? `${count.toLocaleString('en')} or more` : count.toLocaleString('en')
}

function newReplayForm(view: NewReplayView): Html {
  const { filter, counted, highestId, form } = view
  const target = { id: 'job-target', ...form }
  const { count, more } = counted
  const label = `Replay ${more ? 'all of them' : countText(count, 'event')}`
  return html`${refusal(target)}
  ${postForm(
    {
      id: 'new-job',
      class: 'stack',
      action: '/replays',
      target: '#new-replay',
      'hx-push-url': 'true',
    },
    html`${Object.entries(filter).map(([name, text]) => text !== '' && hiddenField(name, text))}
      ${hiddenField('highest_id', String(highestId))} ${targetField(target, view)}
      <p class="actions">
        ${submit(label, { class: 'primary', id: 'start-replay' })}
        <a href="${logUrl(filter)}">Back to the log</a>
      </p>`,
  )}`
}

/** The filters in words. */
function filterText(filter: Partial<ExportQuery>): Printable {
  const chosen = chosenFilters(filter)
  if (chosen.length === 0) return 'nothing: all events'
  return html`<ul class="badges">
    ${chosen.map(([label, value]) => html`<li>${label}: <bdi>${value}</bdi></li>`)}
  </ul>`
}

/** `/replays`: the jobs that run, and those that ended lately. */
export function replayJobsPage(jobs: readonly ReplayJob[]): Page {
  return {
    title: 'Replays',
    section: 'log',
    body: html`${listHead('replays')}
      <p class="muted">
        Replays of many events, which begin at the <a href="/log">log</a>. One that has ended is
        kept for a week.
      </p>
      ${replayJobsFragment(jobs)}`,
  }
}

const REFRESH_S = 2

/** The list alone, which renews itself while a job runs. */
export function replayJobsFragment(jobs: readonly ReplayJob[]): Html {
  const runs = jobs.some(({ ended_at }) => ended_at === null)
  const way = html`<a href="/log">Choose events in the log</a>`
  const own = { id: 'jobs', ...(runs && polled('/replays', REFRESH_S, 'jobs')) }
  const table = listTable({
    bodyId: 'job-rows',
    caption: 'Replays of many events, newest first',
    columns: ['Target', 'State', 'Events', 'Progress', 'Started'],
    rows: jobs.map(jobRow),
    whenEmpty: emptyState('No replays of many events.', way),
  })
  return html`<div${attributes(own)}>${table}</div>`
}

function jobRow(job: ReplayJob): Html {
  const { id, target, count, started_at } = job
  return tableRow(
    { 'data-job': id, 'data-state': job.state },
    {
      type: rowLink(`/replays/${id}`, html`<bdi>${breakable(target)}</bdi>`),
      verify: stateBadge(job),
      counts: countText(count, 'event'),
      answered: progressText(job),
      when: timeTag(started_at),
    },
  )
}

const LOOKS = { planning: 'queue', sending: 'queue', finished: 'verified', cancelled: 'bad' }

function stateBadge({ state }: ReplayJob): Html {
  return html`<span class="badge ${LOOKS[state]}">${state}</span>`
}

function progressText({ delivered, failed, waiting, ended_at }: ReplayJob): string {
  const parts = [`${delivered.toLocaleString('en')} delivered`]
  if (failed > 0) parts.push(`${failed.toLocaleString('en')} failed`)
  if (waiting > 0) {
    parts.push(`${waiting.toLocaleString('en')} ${ended_at === null ? 'waiting' : 'not sent'}`)
  }
  return parts.join(', ')
}

/** `/replays/{job}`: how far a job has come. */
export function replayJobPage(job: ReplayJob): Page {
  return {
    title: 'Replay',
    section: 'log',
    body: html`<p class="crumb"><a href="/replays">Replays</a> / ${job.id}</p>
      <h1>Replay events</h1>
      ${HOW} ${replayJobFragment(job)}`,
  }
}

/** The job alone, which renews itself until it ends; and the answer to its form. */
export function replayJobFragment(job: ReplayJob): Html {
  const { id, count, done, target, filter, delivered, failed, waiting, ended_at } = job
  const runs = ended_at === null
  const own = {
    id: 'job',
    class: 'panel',
    'data-state': job.state,
    ...(runs && polled(`/replays/${id}`, REFRESH_S, 'job')),
  }
  const found = count.toLocaleString('en')
  return html`<div${attributes(own)}>
    <div class="title-line">
      <p role="status">${stateBadge(job)} ${STATES[job.state]}</p>
      ${runs && cancelForm(job)}
    </div>
    <progress${attributes({ max: Math.max(count, 1), value: done, 'aria-label': 'Done' })}></progress>
    ${facts({
      Target: html`<bdi>${breakable(target)}</bdi>`,
      'Chosen by': filterText(filter),
      'In the log': html`<a href="${logUrl({ ...filter, until: String(job.highest_id) })}"
        >up to event ${job.highest_id}</a
      >`,
      Events: job.state === 'planning' ? `${found} found so far` : found,
      Delivered: delivered.toLocaleString('en'),
      Failed: failed.toLocaleString('en'),
      'Failed events': failedLinks(job),
      [runs ? 'Waiting' : 'Not sent']: waiting > 0 || runs ? waiting.toLocaleString('en') : false,
      'Last answer': lastAnswer(job, 'none yet'),
      Started: timeTag(job.started_at),
      Ended: ended_at !== null && timeTag(ended_at),
    })}
  </div>`
}

const STATES = {
  planning: 'The events are looked for; then they are sent.',
  sending: 'Events are sent.',
  finished: 'Every event was delivered or given up.',
  cancelled: 'Cancelled: the rest was not sent.',
}

function cancelForm({ id }: ReplayJob): Html {
  const confirm = 'Cancel this replay? What was not sent yet is not sent.'
  const action = `/replays/${id}/cancel`
  return postForm(
    { action, target: '#job', confirm },
    submit('Cancel replay', { class: 'danger', id: 'cancel-replay' }),
  )
}

function failedLinks({ failed_ids }: ReplayJob): Printable {
  if (failed_ids.length === 0) return false
  return failed_ids.map((id) => html`<a href="/log/${id}">${id}</a> `)
}
