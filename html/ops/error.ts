import { html, type Html } from '../../kernel/html.ts'
import { errorBody, type ShownError } from '../layout.ts'
import { opsPage } from './layout.ts'

/** The page of a refused or failed request. */
export function opsErrorPage(error: ShownError): Html {
  const ways = html`<a href="/">Go to the dashboard</a> or <a href="/sessions">to the sessions</a>.`
  return opsPage({
    title: `${error.status} ${error.title}`,
    section: 'none',
    body: errorBody(error, ways),
  })
}
