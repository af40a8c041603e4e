import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import type { CheckHealth } from '../../../services/ops/checks/health.ts'
import type { CheckInvestigation } from '../../../services/ops/investigations/waiting.ts'
import { postForm, removalForm, submit } from '../../form.ts'
import { contentView } from '../../layout.ts'
import { disclosed, facts, secretBox, timeTag } from '../../parts.ts'
import { muteText, stateBadge } from '../checks.ts'
import { investigationText } from '../investigations.ts'
import { sessionLink } from '../layout.ts'
import { muteForm } from '../mutes.ts'
import { changeForm, type CheckFields } from './form.ts'
import { historySection, type HistoryView } from './history.ts'

/** What `/checks/{id}` shows. */
export interface CheckView {
  check: CheckHealth
  investigation: CheckInvestigation
  /** Its definition, to be changed; undefined where the inventory file has it. */
  fields: CheckFields | undefined
  /** How often it runs, such as `5m`. */
  every: string
  mute: FormState
  past: HistoryView
  /** The address of a heartbeat that was just made; null otherwise. */
  address: string | null
}

/** A check: what is known of it, and what may be done with it. */
export function checkView(view: CheckView): View {
  const { service, name } = view.check
  const title = `${service}: ${name}`
  const list = `/checks?service=${encodeURIComponent(service.toWellFormed())}`
  const above = html`<p class="crumb">
      <a href="/checks">Checks</a> / <a href="${list}"><bdi>${service}</bdi></a>
    </p>
    <h1><bdi>${title}</bdi></h1>`
  return contentView({ title, section: 'checks', above }, checkContent(view))
}

function checkContent(view: CheckView): Html {
  const { check, investigation, fields, every, mute, past, address } = view
  const { id, service, name } = check
  const isChanged = fields?.form.fault !== undefined
  return html`<div id="check-page">
    ${address !== null && addressBox(address)}
    <div class="panel">
      ${checkFacts(check, every, investigation)}
      <div class="field">
        ${postForm(
          { action: `/checks/${id}/run`, target: '#check-page' },
          submit('Run now', { id: 'run-now', class: 'primary' }),
        )}
      </div>
      ${disclosed('Mute…', muteForm(mute, { service, check: name }), {
        id: 'mute',
        open: mute.fault !== undefined,
      })}
      ${
        fields !== undefined &&
        html`${disclosed('Edit…', changeForm(id, fields), { id: 'edit', open: isChanged })}
        ${disclosed('Remove…', removal(check))}`
      }
    </div>
    ${historySection(past)}
  </div>`
}

function addressBox(address: string): Html {
  const use = html`<p>
    Let the job call it when it has ended; with <code>/fail</code> at its end when it has failed,
    and with <code>/start</code> when it begins.
  </p>`
  return secretBox('Address of the heartbeat', { what: 'address', secret: address }, use)
}

function checkFacts(check: CheckHealth, every: string, investigation: CheckInvestigation): Html {
  const { type, state, message, since, checked_at, ms, session_id, source } = check
  return facts({
    State: stateBadge(state),
    Muted: muteText(check),
    'Last message': html`<bdi>${message}</bdi>`,
    Since: checked_at !== null && timeTag(since),
    Checked: checked_at === null ? 'not yet' : html`${timeTag(checked_at)}, took ${ms} ms`,
    'Run by': session_id !== null && sessionLink(session_id),
    Investigation: investigationText(investigation),
    Type: type,
    Every: every,
    Definition: source === 'hand' ? 'made by hand' : 'in the inventory file: change it there',
  })
}

function removal({ id, service, name }: CheckHealth): Html {
  const effect = 'It does not run any more. Its history stays, for a check of the same name.'
  return removalForm('Remove', `${service}: ${name}`, effect, {
    action: `/checks/${id}/delete`,
    target: '#check-page',
  })
}
