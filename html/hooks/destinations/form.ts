import { html, type Html } from '../../../kernel/html.ts'
import { checkbox, field, type Form } from '../../form.ts'

// What is configured of a destination, as fields of a form.

/** The fields beside the name. */
export function destinationFields(form: Form): Html {
  const ordered = html`<strong>In order</strong> – one event at a time; a failed one holds up those
    behind it`
  return html`${field(form, 'url', 'URL', {
      type: 'url',
      placeholder: 'https://example.com/hook',
    })}
    <fieldset>
      <legend>Which events</legend>
      ${field(form, 'providers', 'Providers', {
        ...LINES,
        hint: 'One a line. Empty: events of all providers.',
      })}
      ${field(form, 'event_types', 'Event types', {
        ...LINES,
        hint: html`One a line; <code>*</code> stands for any characters: <code>invoice.*</code>.
          Empty: all types.`,
      })}
      ${field(form, 'json', 'Members of the JSON body', {
        ...LINES,
        hint: html`One a line, such as <code>data.object.id=evt_1</code>. All of them must fit.`,
      })}
    </fieldset>
    <fieldset>
      <legend>How they are sent</legend>
      ${checkbox(form, 'ordered', ordered)}
      ${field(form, 'rate', 'Deliveries a second, at most', {
        placeholder: 'no bound',
        inputmode: 'numeric',
      })}
      ${field(form, 'timeout_s', 'Seconds for an answer', {
        placeholder: '10',
        inputmode: 'numeric',
      })}
    </fieldset>`
}

const LINES = { rows: 2, spellcheck: 'false', autocapitalize: 'off' } as const
