import { html, type Html } from '../../kernel/html.ts'
import type { FormState, View } from '../../kernel/http/view.ts'
import type { CheckHealth } from '../../services/ops/watch/checks/health.ts'
import type { CheckInvestigation } from '../../services/ops/alerts/investigations/waiting.ts'
import { postForm, removalForm, submit } from '../form.ts'
import { contentView } from '../layout.ts'
import { attributes, disclosed, factLine, polled, secretBox, timeTag } from '../parts.ts'
import { muteAction, mutedBadge, muteText, serviceUrl, stateBadge } from './watch/checks.ts'
import { investigationText } from './alerts/investigations.ts'
import { durationText, sessionLink } from './layout.ts'
import { muteForm } from './watch/mutes.ts'
import { changeForm, type CheckFields } from './watch/checks/form.ts'
import { historySection, type HistoryView } from './watch/checks/history.ts'

/** What `/checks/{id}` shows. */
interface CheckView {
  check: CheckHealth
  investigation: CheckInvestigation
  /** Its definition, to be changed; undefined where the inventory file has it. */
  fields: CheckFields | undefined
  /** How often it runs, such as `5m`. */
  every: string
  mute: FormState
  past: HistoryView
  /** The last lines that the job of a heartbeat sent along; empty without any. */
  said: string
  /** The address of a heartbeat that was just made; null otherwise. */
  address: string | null
  /** The address of this page, which an open page polls. */
  path: string
  now: Date
  /** It was muted by the request that this answers. */
  isMutedNow: boolean
}

/** A check: what is known of it, and what may be done with it. */
export function checkView(view: CheckView): View {
  const { service, name } = view.check
  const title = `${service}: ${name}`
  const above = html`<p class="crumb">
      <a href="/checks">Checks</a> / <a href="${serviceUrl(service)}"><bdi>${service}</bdi></a>
    </p>
    <h1><bdi>${title}</bdi></h1>`
  return contentView({ title, section: 'checks', script: 'ops.js', above }, checkContent(view))
}

function checkContent(view: CheckView): Html {
  const { check, fields, mute, address } = view
  const isChanged = fields?.form.fault !== undefined
  return html`<div id="check-page">
    ${address !== null && addressBox(address)} ${nowSection(view)}
    <div class="panel check-forms">
      ${disclosed('Mute for a time or in a window…', muteForm(mute, check.id), {
        id: 'mute',
        open: mute.fault !== undefined,
      })}
      ${
        fields !== undefined &&
        html`${disclosed('Edit…', changeForm(check.id, fields), { id: 'edit', open: isChanged })}
        ${disclosed('Remove…', removal(check))}`
      }
    </div>
  </div>`
}

/** What an open page renews. What is typed below it stays, and so does an address shown once. */
function nowSection(view: CheckView): Html {
  const { check, past, said, path, isMutedNow } = view
  const own = { id: 'check-now', 'aria-label': 'Now', ...polled(path, 10, 'check-now') }
  const run = submit('Run now', { id: 'run-now', class: 'primary' })
  const target = '#check-page'
  return html`<section${attributes(own)}>
    <div class="title-line check-head">
      <div>
        ${stateLine(view)}
        <p class="check-message"><bdi>${check.message}</bdi></p>
      </div>
      <div class="actions">
        ${postForm({ action: `/checks/${check.id}/run`, target }, run)}
        ${muteAction(check, { target, isMutedNow })}
      </div>
    </div>
    ${check.mute && html`<p class="muted">${muteText(check.mute)}</p>`}
    ${definitionLine(view)} ${said !== '' && saidSection(said)} ${historySection(past)}
  </section>`
}

function saidSection(said: string): Html {
  return html`<h2>What its job said last</h2>
    <pre><bdi>${said}</bdi></pre>`
}

/** Its state, since when, and the last look. */
function stateLine({ check, now }: CheckView): Html {
  const { state, mute, since, checked_at, ms, session_id } = check
  const lasts = durationText(Math.max(0, now.getTime() - since.getTime()))
  const badges = html`${stateBadge(state)} ${mutedBadge(mute)}`
  if (checked_at === null) return factLine([badges, 'not checked yet'])
  return factLine([
    html`${badges} for ${lasts}`,
    html`since ${timeTag(since, 'exact')}`,
    html`checked ${timeTag(checked_at)}, took ${ms} ms`,
    session_id !== null && html`by ${sessionLink(session_id)}`,
  ])
}

function definitionLine({ check: { type, source }, every, investigation }: CheckView): Html {
  const investigated = investigationText(investigation)
  return factLine([
    html`<span class="muted">${type} every ${every}</span>`,
    html`<span class="muted"
      >${source === 'hand' ? 'made by hand' : 'in the inventory file: change it there'}</span
    >`,
    investigated !== false && html`Investigation: ${investigated}`,
  ])
}

function addressBox(address: string): Html {
  const use = html`<p>
    Let the job call it when it has ended; with <code>/fail</code> at its end when it has failed,
    and with <code>/start</code> when it begins.
  </p>`
  return secretBox('Address of the heartbeat', { what: 'address', secret: address }, use)
}

function removal({ id, service, name }: CheckHealth): Html {
  const effect = 'It does not run any more. Its history stays, for a check of the same name.'
  return removalForm('Remove', `${service}: ${name}`, effect, {
    action: `/checks/${id}/delete`,
    target: '#check-page',
  })
}
