import { html, type Html } from '../../kernel/html.ts'
import { errorBody, type ShownError } from '../layout.ts'
import { hooksPage } from './layout.ts'

/** The page of a refused or failed request. */
export function errorPage(error: ShownError): Html {
  const ways = html`<a href="/">Go to the dashboard</a> or <a href="/log">open the log</a>.`
  return hooksPage({
    title: `${error.status} ${error.title}`,
    section: 'none',
    body: errorBody(error, ways),
  })
}
