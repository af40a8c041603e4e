import { html, type Html } from '../../../../kernel/html.ts'
import { field, postForm, submit, VERBATIM } from '../../../form.ts'
import { startHere } from '../../../parts.ts'
import type { ShortLinks } from './links.ts'

const EXAMPLE = JSON.stringify({ slug: 'docs', url: 'https://docs.example.com/' })

/**
 * The form of a user's first link. It stands above the list, which is polled. CSS hides the form
 * once the list has a link.
 */
export function firstLinkForm({ shown }: ShortLinks): Html {
  const form = { id: 'first' }
  const needed = { ...VERBATIM, required: true }
  const slug = { placeholder: 'docs', minlength: 2, maxlength: 64, ...needed }
  const url = { placeholder: 'https://docs.example.com/', ...needed }
  return html`<section class="panel first-link" aria-labelledby="first-link-title">
    <h2 id="first-link-title">Create your first link</h2>
    <p>Give an address a short name. Then ${shown}/name leads there, for everybody.</p>
    ${postForm(
      { action: '/-/new', class: 'filter' },
      html`${field(form, 'slug', `Short name, after ${shown}/`, slug)}
        ${field(form, 'url', 'Leads to', url)}
        <div class="actions">${submit('Create link')} <a href="/-/new">More fields</a></div>`,
    )}
  </section>`
}

/** Shown instead of the list until there is a link. */
export function firstLinkStep({ base }: ShortLinks): Html {
  const command =
    `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\\n` +
    `  -d '${EXAMPLE}' '${base}/api/v1/links'`
  return startHere({
    title: 'Or from a terminal',
    text: html`Create a token under <a href="/-/tokens">Tokens</a>, put it into <code>TOKEN</code>,
      and run this command. This page shows the link as soon as it is there. Links of others are
      under <a href="/-/all">All links</a>.`,
    command,
    path: '/-/',
    target: 'links-results',
  })
}
