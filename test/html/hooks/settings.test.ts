import { t } from 'tap'
import { settingsForm, settingsPage } from '../../../html/hooks/settings.ts'
import type { SettingsView } from '../../../html/hooks/views.ts'
import { render } from '../../../kernel/html.ts'

function view(changes: Partial<SettingsView> = {}): SettingsView {
  return {
    settings: {
      retention_max_age_days: 0,
      retention_max_rows: 50_000,
      sse_retry_ms: 3000,
      replay_default_target: null,
    },
    saved: false,
    refused: null,
    configuration: [['HOOKS_ADDR', '127.0.0.1:8080']],
    ...changes,
  }
}

const baseUrl = 'http://127.0.0.1:8080'
const parts = {
  endpoints: { endpoints: [], baseUrl, made: null, refused: null },
  forwarders: { forwarders: [], connected: [], countedTo: 1_000, baseUrl },
}

t.test('the form is a part of the page, to the letter', async (t) => {
  const page = render(settingsPage(view(), parts))
  t.ok(page.includes(render(settingsForm(view()))))
  t.match(page, '0 = no limit')
  t.match(page, /HOOKS_ADDR[\s\S]*127\.0\.0\.1:8080/)
})

t.test('saving is announced', async (t) => {
  t.match(render(settingsForm(view({ saved: true }))), /role="status"[^>]*>Saved/)
  t.notMatch(render(settingsForm(view())), 'role="status"')
})

t.test('a refusal stands at its field, or above all when no field bears the name', async (t) => {
  const refused = { field: 'sse_retry_ms', message: 'At least 250.' }
  const text = render(settingsForm(view({ refused })))
  t.match(text, /id="sse_retry_ms"[^>]*aria-invalid="true"/)
  t.match(text, /id="sse_retry_ms-refused"[^>]*>At least 250\./)
  t.equal(text.match(/aria-invalid/g)?.length, 1)
  const other = render(settingsForm(view({ refused: { field: 'x', message: 'No such field.' } })))
  t.match(other, /role="alert"[^>]*>No such field\./)
})
