import { html, type Html } from '../../../kernel/html.ts'
import type { Pausable, Pause } from '../../../services/ops/agent/pause.ts'
import { capitalized, hiddenField, postForm, submit } from '../../form.ts'
import { disclosed, timeTag } from '../../parts.ts'

const ALL = ['investigations', 'repairs'] as const

/** What does not happen while it is paused, and what does. */
const EFFECTS: Readonly<Record<Pausable, string>> = {
  investigations:
    'no session starts by schedule, alert, failing check or escalation. One that runs goes on, ' +
    'and you can start one.',
  repairs: 'no operation runs, whatever a session asks for.',
}

/** What is paused. */
export function pausedOf(pause: Pause): readonly Pausable[] {
  return ALL.filter((what) => pause[what].paused)
}

/** What stands above every page while something is paused. */
export function pauseBanner(pause: Pause): Html | false {
  const paused = pausedOf(pause)
  if (paused.length === 0) return false
  const look = pause.investigations.paused ? 'bad' : 'warn'
  return html`<p class="connection health ${look}" id="paused">
    <span class="dot" aria-hidden="true"></span>
    <span role="status"
      >${paused.map((what) => pausedLine(pause, what))} <a href="/#pause">Resume</a></span
    >
  </p>`
}

function pausedLine(pause: Pause, what: Pausable): Html {
  const { since, by } = pause[what]
  return html`${capitalized(what)} are paused since ${since && timeTag(since)} by
    <bdi>${by}</bdi>. `
}

/** The switch for each of them. It is folded until something is paused. */
export function pausePanel(pause: Pause): Html {
  const content = ALL.map((what) => {
    const { paused } = pause[what]
    return html`<p>
        ${paused ? pausedLine(pause, what) : html`${capitalized(what)} go on. `}
        <span class="muted"
          >${paused ? 'Meanwhile' : 'While they are paused,'} ${EFFECTS[what]}</span
        >
      </p>
      ${postForm(
        { action: '/pause' },
        html`${hiddenField('what', what)} ${hiddenField('paused', String(!paused))}
        ${submit(`${paused ? 'Resume' : 'Pause'} ${what}`, {
          id: `pause-${what}`,
          class: paused ? 'primary' : 'danger',
        })}`,
      )}`
  })
  const own = { summaryId: 'pause-summary', open: pausedOf(pause).length > 0 }
  return html`<section id="pause" class="panel" aria-label="Pause">
    ${disclosed('Pause investigations or repairs…', content, own)}
  </section>`
}
