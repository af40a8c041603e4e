import { html, type Html } from '../../../kernel/html.ts'
import type { FormState } from '../../../kernel/http/view.ts'
import { field, hiddenField, postForm, refusal, submit, VERBATIM } from '../../form.ts'
import { disclosed, section } from '../../parts.ts'

/** The names of a link. */
interface NamesView {
  link: { id: string; slug: string; aliases: readonly string[] }
  mayChange: boolean
  form: FormState
}

/** A link's name, its further names, and the way to give it another one. */
export function namesSection({ link, mayChange, form: state }: NamesView): Html | false {
  const { id, slug, aliases } = link
  if (!mayChange && aliases.length === 0) return false
  const items = aliases.map(
    (alias) => html`<li>${alias} ${mayChange && promoteForm(id, alias)}</li>`,
  )
  const content = html`<ul class="members">
      <li>${slug} <span class="badge">name</span></li>
      ${items}
    </ul>
    ${mayChange && html`<p class="actions"><a href="/-/links/${id}/edit#link-aliases">Change further names</a></p>`}
    ${mayChange && renameForm(id, state)}`
  return section('names-title', 'Also known as', content, { class: 'panel' })
}

/** Makes one of the aliases the link's name. */
function promoteForm(id: string, alias: string): Html {
  const label = html`Make it the name <span class="hidden">${alias}</span>`
  return postForm(
    { action: `/-/links/${id}/slug`, target: '#members' },
    html`${hiddenField('slug', alias)} ${submit(label, {})}`,
  )
}

function renameForm(id: string, state: FormState): Html {
  const form = { ...state, id: 'rename' }
  const content = postForm(
    { class: 'stack', action: `/-/links/${id}/slug`, target: '#members' },
    html`${refusal(form)}
      <p>The present name leads on, as a further one.</p>
      ${field(form, 'slug', 'New name', VERBATIM)}
      <p class="actions">${submit('Rename', { id: 'rename-link' })}</p>`,
  )
  return disclosed('Rename…', content, { open: form.fault !== undefined })
}
