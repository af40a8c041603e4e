import type { Session } from '../../db/ops/sessions.ts'
import { html, type Html } from '../../kernel/html.ts'
import { opsPage } from './layout.ts'
import { nextLink } from './parts.ts'
import { sessionTable } from './session-table.ts'

/** `/sessions`, newest first. */
export function sessionsPage(sessions: readonly Session[], older: string | undefined): Html {
  return opsPage({
    title: 'Sessions',
    section: 'sessions',
    body: html`<h1>Sessions</h1>
      ${
        sessions.length === 0
          ? html`<p class="panel empty">
              There is no session here. <a href="/">Start one on the dashboard</a>.
            </p>`
          : sessionTable('session-rows', 'Sessions, newest first', sessions)
      }
      ${nextLink(older, 'Older sessions')}`,
  })
}
