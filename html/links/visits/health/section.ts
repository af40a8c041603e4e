import type { Health } from '../../../../db/links/visits/health.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import { hiddenField, postForm, submit } from '../../../form.ts'
import { section, timeTag } from '../../../parts.ts'

/** What makes a link broken. */
export const BROKEN = 'Twice, at least a day apart, there was no page (404, 410) or no such host.'

/** Shown where the address of a link is gone. */
export function brokenBadge(isBroken: boolean): Html | false {
  return isBroken && html`<span class="badge bad" title="${BROKEN}">broken</span>`
}

/** The part of a link's page about its address; nothing while checks are off. */
export function healthSection(
  id: string,
  health: Health | undefined,
  mayChange: boolean,
): Html | false {
  if (health === undefined) return false
  const content = html`<p>${healthText(health)}</p>
    ${mayChange && (health.checkable || !health.enabled) && checkForm(id, health)}`
  return section('health-title', 'Health of its address', content, { class: 'panel' })
}

const STATES = { unchecked: '', broken: 'Broken', unknown: 'Unknown', ok: 'Well' } as const

function healthText({ enabled, checkable, state, since, checked_at, problem }: Health): Html {
  if (!enabled) return html`It is left out of the checks.`
  if (!checkable) return html`It is not checked: it is secure or archived, or has places.`
  if (checked_at === null || since === null) return html`It has not been checked yet.`
  const about = problem !== null && html`, because ${problem}`
  return html`${STATES[state]} since ${timeTag(since)}${about}. Last checked
  ${timeTag(checked_at)}.`
}

function checkForm(id: string, { enabled }: Health): Html {
  const label = enabled ? 'Leave it out of the checks' : 'Check it again'
  return postForm(
    { action: `/-/links/${id}/check` },
    html`${hiddenField('enabled', String(!enabled))} ${submit(label, { id: 'set-check' })}`,
  )
}
