import type { Change } from '../../db/links/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { LinkFormFields } from './link-fields.ts'
import { changeList } from './link-history.ts'

/** What somebody else has made of a link since its form was opened. */
export interface StaleForm {
  readonly stored: LinkFormFields
  /** Newest first. */
  readonly changes: readonly Change[]
}

/** What was typed stays in the form; what is stored stands here, where it is something else. */
export function staleNote({ stored, changes }: StaleForm, typed: LinkFormFields): Html {
  const different = STORED_FIELDS.filter(([name]) => stored[name] !== typed[name])
  return html`<div class="refused" role="alert">
    <p>
      Somebody else has changed this link since you opened this form, so nothing was saved. What you
      typed is still here: save again to replace what is stored.
    </p>
    ${
      different.length > 0 &&
      html`<p>Stored now:</p>
        <ul>
          ${different.map(
            ([name, label]) =>
              html`<li>
                ${label}: <q><bdi>${storedText(stored[name])}</bdi></q>
              </li>`,
          )}
        </ul>`
    }
    <p>Last changes:</p>
    ${changeList(changes)}
  </div>`
}

const STORED_FIELDS: readonly (readonly [keyof LinkFormFields, string])[] = [
  ['url', 'Leads to'],
  ['title', 'Title'],
  ['description', 'Description'],
  ['tags', 'Tags'],
  ['visibility', 'Visibility'],
  ['append_path', 'Further path'],
]

function storedText(value: string | boolean): string {
  if (typeof value === 'string') return value
  return value ? 'append it' : 'do not append it'
}
