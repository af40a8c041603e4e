// `go docs` in the address bar.

import { readSettings } from './gatehouse.js'

chrome.omnibox.setDefaultSuggestion({ description: 'Open the go link <match>%s</match>' })

chrome.omnibox.onInputEntered.addListener(async (text, disposition) => {
  const settings = await readSettings()
  if (settings === undefined) return chrome.runtime.openOptionsPage()
  const url = addressOf(settings.base, text.trim())
  if (disposition === 'currentTab') await chrome.tabs.update({ url })
  else await chrome.tabs.create({ url, active: disposition === 'newForegroundTab' })
})

/** A name, with a path and a query perhaps, is a link; several words are searched for. */
function addressOf(base, text) {
  if (/\s/.test(text)) return `${base}/-/go?q=${encodeURIComponent(text)}`
  return `${base}/${encodeURI(text)}`
}
