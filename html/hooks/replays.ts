import type { Replay } from '../../db/hooks/replays.ts'
import { html, type Html } from '../../kernel/html.ts'
import { listTable, attributes, saved, timeTag } from '../parts.ts'
import { postForm, submit } from '../form.ts'

/** The part of an event's page that sends it on. */
export interface ReplayView {
  readonly eventId: number
  /** Where it is sent when no target is given; null when the settings name none. */
  readonly defaultTarget: string | null
  /** The newest replays, newest first. */
  readonly replays: readonly Replay[]
  /** True right after an replay: what the newest one came to is said. */
  readonly done: boolean
  /** Why the last form was refused, with what was typed. */
  readonly refused: { readonly typed: string; readonly message: string } | null
}

/** Part of an event's page: the form that sends it on, and what came of every time that it was. */
export function replaySection(view: ReplayView): Html {
  const { defaultTarget, refused } = view
  return html`<section aria-labelledby="replay-title">
    <h2 id="replay-title">Replay</h2>
    <p class="muted">
      Sends the stored bytes to a target, signed anew for a signed provider. Private addresses are
      refused unless they are the default target of the <a href="/settings">settings</a> or listed
      in <code>HOOKS_REPLAY_TARGETS</code>.
    </p>
    ${replayForm(view)}
    ${
      defaultTarget !== null &&
      html`<p id="target-hint" class="hint">Empty = the default target, ${defaultTarget}</p>`
    }
    ${refused !== null && html`<p id="target-refused" class="refused" role="alert">${refused.message}</p>`}
    ${replaysList(view)}
  </section>`
}

function replayForm({ eventId, defaultTarget, refused }: ReplayView): Html {
  const again = { 'aria-invalid': 'true', 'aria-errormessage': 'target-refused', autofocus: true }
  const target = {
    ...{ id: 'target_url', name: 'target_url', type: 'url', value: refused?.typed },
    placeholder: defaultTarget ?? 'https://example.com/hook',
    autocomplete: 'off',
    required: defaultTarget === null,
    ...(defaultTarget !== null && { 'aria-describedby': 'target-hint' }),
    ...(refused !== null && again),
  }
  return postForm(
    {
      ...{ id: 'replay', class: 'filter', action: `/log/${eventId}/replay` },
      ...{ target: '#attempts', 'hx-sync': 'this:drop' },
    },
    html`<label for="target_url">Target (URL) <input${attributes(target)} /></label>
      ${submit('Replay', { class: 'primary', id: 'replay-button' })}`,
  )
}

/** The list alone: the answer to `POST /log/{id}/replay`. `done` says what the newest one came to. */
export function replaysList({ replays, done }: Pick<ReplayView, 'replays' | 'done'>): Html {
  const [newest] = replays
  return html`<div id="attempts">
    ${done && newest !== undefined && outcomeLine(newest)}
    ${
      replays.length === 0
        ? html`<p class="muted">Not replayed yet.</p>`
        : listTable({
            bodyId: 'attempt-rows',
            caption: 'Attempts to send this event on, newest first',
            columns: ['Target', 'Result', 'Answer', 'By', 'Time'],
            kind: 'attempts',
            rows: replays.map(replayRow),
          })
    }
  </div>`
}

function replayRow(replay: Replay): Html {
  const { outcome, status, ms, kind, target, at, detail } = replay
  return html`<tr role="row" data-attempt="${replay.id}" data-outcome="${outcome}">
    <td role="cell" class="type">
      <bdi>${target}</bdi> ${detail !== null && html`<span class="detail">${detail}</span>`}
    </td>
    <td role="cell" class="verify">
      <span class="badge ${outcome === 'delivered' ? 'verified' : 'bad'}">${outcome}</span>
    </td>
    <td role="cell" class="when">${status === null ? 'none' : `${status} in ${ms} ms`}</td>
    <td role="cell" class="when">${kind}</td>
    <td role="cell" class="when">${timeTag(at)}</td>
  </tr>`
}

function outcomeLine({ outcome, status, ms, detail }: Replay): Html {
  if (outcome === 'delivered') {
    return saved(`Delivered: ${status} in ${ms} ms.`)
  }
  const reasons = [status !== null && `the target answered ${status}`, detail].filter(Boolean)
  return html`<p class="refused" role="status">Not delivered: ${reasons.join('; ')}.</p>`
}
