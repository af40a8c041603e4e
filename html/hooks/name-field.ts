import { html, type Html } from '../../kernel/html.ts'

/** A name that is typed: the field's id, and where the last one was refused what it was and the message's id. */
export interface NameField {
  readonly id: string
  readonly refused: { readonly name: string } | null
  readonly messageId: string
}

/** The field for the name of a generic provider or an endpoint; the focus goes to it after a refusal. */
export function nameField({ id, refused, messageId }: NameField): Html {
  return html`<label>
    Name
    <input
      name="name"
      id="${id}"
      value="${refused?.name}"
      required
      maxlength="64"
      pattern="[a-z0-9][a-z0-9_\\-]{0,63}"
      title="Lower-case letters, digits, - and _; a letter or digit first"
      autocomplete="off"
      autocapitalize="off"
      spellcheck="false"
      ${refused !== null && html`aria-invalid="true" aria-describedby="${messageId}" autofocus`}
    />
  </label>`
}
